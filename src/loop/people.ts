/** What people say to a loop: turn now, stop, go on. Each is in the audit log, and every runner hears of it at once. */
import { audit } from '../deploy/audit.ts';
import { ConflictError } from '../errors.ts';
import { listLoopTurns } from '../store/loop-turns.ts';
import { type Loop, readLoop, saveLoop } from '../store/loops.ts';
import type { Store } from '../store/postgres.ts';
import { postgresRunStore } from '../store/runs.ts';
import { runId } from './parts.ts';

type Said = { readonly agent: string; readonly by: string; readonly now: number };

const note = (
  store: Store,
  { agent, by: actor, now: at }: Said,
  event: string,
  details: Record<string, unknown> = {},
) => audit(store.db, { agent, actor, event, subject: agent, details, at });

/**
 * A turn now, or on with the one that is under way: what failed in it is tried again. A seed belongs to a new turn; another
 * one than the turn under way has is refused and not ignored.
 */
export async function wantTurn(store: Store, said: Said & { readonly seed?: number | undefined }): Promise<Loop> {
  const { agent, by, now, seed } = said;
  const paused = (await readLoop(store, agent))?.paused;
  if (paused)
    throw new ConflictError(
      `The loop of ${agent} was paused by ${paused.by}; say \`pawl loop resume --agent ${agent}\` first.`,
    );
  const [last] = await listLoopTurns(store, agent, 1);
  if (last && last.endedAt === null) {
    if (seed !== undefined && seed !== last.seed)
      throw new ConflictError(
        `Turn ${last.number} was begun with seed ${last.seed} and has not ended; leave out --seed ${seed} to go on with it.`,
      );
    return saveLoop(store, agent, now, { resumedAt: now });
  }
  await note(store, said, 'loop-asked', seed === undefined ? {} : { seed });
  return saveLoop(store, agent, now, { wanted: { at: now, by, ...(seed === undefined ? {} : { seed }) } });
}

/** The stage under way stops where it can go on later; a rollout that is with users goes on. Twice is the same as once. */
export async function pauseLoop(store: Store, said: Said): Promise<Loop> {
  const loop = await readLoop(store, said.agent);
  if (loop?.paused) return loop;
  await note(store, said, 'loop-paused');
  return saveLoop(store, said.agent, said.now, { paused: { at: said.now, by: said.by } });
}

/** On with the loop, with a stage that failed, and with a run of its turn that somebody paused. */
export async function resumeLoop(store: Store, said: Said): Promise<Loop> {
  const { agent, now } = said;
  const [last] = await listLoopTurns(store, agent, 1);
  if (last && last.endedAt === null) {
    const runs = postgresRunStore(store);
    const run = await runs.get(runId(last));
    if (run?.request === 'pause' && run.status !== 'finished') await runs.request(run.id, null);
  }
  await note(store, said, 'loop-resumed');
  return saveLoop(store, agent, now, { paused: null, resumedAt: now });
}
