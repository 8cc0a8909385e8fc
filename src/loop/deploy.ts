/**
 * Deploy: registers the candidate and begins its rollout, which waits for a person where its report is no pass or the agent's
 * settings say so. The rollout then moves on the traffic that comes (deploy/watch-rollouts.ts), without this stage; it is
 * entered again when the rollout has ended, to note what users got.
 */
import { createRelease, startRollout } from '../deploy/reconcile.ts';
import { isOpen, type Rollout } from '../deploy/rollout.ts';
import { measureUsers, type Users } from '../deploy/users.ts';
import { engineUpstream } from '../engine/open.ts';
import { readReport } from '../store/reports.ts';
import { readRollout } from '../store/rollouts.ts';
import { candidateName, ensureLoaded, runId, type Step, type Work } from './parts.ts';
import type { LoopTurn } from './turn.ts';

export const deploy: Step = async (work, turn) => {
  const { store, agent } = work;
  const id = runId(turn);
  const name = candidateName(turn);
  const rollout = await readRollout(store, id);
  if (rollout !== null && !isOpen(rollout)) {
    const { phase, reasons } = rollout;
    return { deploy: { rollout: id, phase, release: name, reasons }, users: await usersOf(work, turn, rollout) };
  }
  const report = (await readReport(store, turn.state.evaluate!.report))!;
  const { checkpoint, run } = turn.state.train!;
  const from = { checkpoint, run, report: report.id, dataset: turn.state.curate!.dataset };
  const made = { agent: agent.name, name, upstream: engineUpstream, model: name, ...from };
  const candidate = await createRelease(store, made, 'pawl', Date.now());
  if (report.verdict === 'fail' || report.verdict === 'unmeasured')
    return {
      deploy: { rollout: null, phase: `not deployed: ${report.verdict}`, release: name, reasons: report.reasons },
      users: await usersOf(work, turn, null),
    };
  await ensureLoaded(await work.engine(), name, checkpoint);
  const start = { id, agent: agent.name, candidate, report, settings: agent.deploy, actor: 'pawl' };
  await startRollout(store, start, Date.now());
  return null;
};

async function usersOf({ store, agent }: Work, turn: LoopTurn, rollout: Rollout | null): Promise<Users | null> {
  const { outcome } = agent.deploy;
  if (outcome === null) return null;
  const { baseline, collect } = turn.state;
  const of = { agent: agent.name, baseline: baseline!.release, candidate: candidateName(turn) };
  return measureUsers(store, { ...of, outcome, collected: collect!, rollout }, Date.now());
}
