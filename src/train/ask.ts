/** Asks a run to pause or stop: the process that trains it hears of it with its next step; where there is none, it is done here. */
import { ownerAlive } from './owner.ts';
import { claimRefusal, type RunRecord, type RunStore } from './run-record.ts';

export type Request = 'pause' | 'stop';
export type Asked = {
  /** `already`: it had ended before; `asked`: whoever trains it will; `done`: nobody trained it. */
  readonly kind: 'already' | 'asked' | 'done';
  readonly sentence: string;
};

export async function askRun(runs: RunStore, run: RunRecord, request: Request, now: number): Promise<Asked> {
  const { id } = run;
  const asked = run.status === (request === 'pause' ? 'paused' : 'stopped') && run.request === request;
  if (run.status === 'finished' || run.status === 'stopped' || asked)
    return { kind: 'already', sentence: `Run ${id} is ${run.status} already.` };
  await runs.request(id, request);
  if (run.status === 'running' && claimRefusal(run, now, ownerAlive) !== null)
    return { kind: 'asked', sentence: `Asked. It will ${request} after the step it is in.` };
  // Nobody trains it, so nobody would hear; the loop leaves the run alone from now on.
  const [status, word] = request === 'pause' ? (['paused', 'Paused'] as const) : (['stopped', 'Stopped'] as const);
  await runs.setStatus(id, status, `${word} on request.`, now);
  return { kind: 'done', sentence: `${word}: nobody trains it now. \`pawl runs resume ${id}\` goes on with it.` };
}
