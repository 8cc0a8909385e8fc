/**
 * Forgets a user: writes the request down, and carries it out. The request stands first, so that nothing new of the past can
 * come in; then what is there is found, written down and removed piece by piece. Killed anywhere, the next look goes on: a
 * worker looks every few seconds, `pawl erase` and `pawl retention run` when they are called.
 */
import type { Artifacts } from '../artifacts/artifacts.ts';
import { audit } from '../audit.ts';
import { ConflictError } from '../errors.ts';
import {
  awaitWriters,
  findConversations,
  removeConversations,
  removeLateScores,
  removeSignalsBy,
  touchedDays,
  vacuumAfter,
} from '../store/erase.ts';
import {
  listErasures,
  moveErasure,
  noteProblem,
  readDatasetsOf,
  readErasure,
  requestErasure,
  waitWithSweep,
} from '../store/erasures.ts';
import { holdOn } from '../store/legal-holds.ts';
import { sweepMessages } from '../store/messages.ts';
import type { Store } from '../store/postgres.ts';
import { alone } from './alone.ts';
import type { Erasure } from './erasure.ts';
import { rewriteDataset } from './rewrite-dataset.ts';

export type Asked = {
  /** Hash. */
  readonly user: string;
  readonly agent: string | null;
  readonly actor: string;
};

/** From here on nothing of the user's past comes in any more. */
export async function askErasure(store: Store, asked: Asked): Promise<Erasure> {
  const { user, agent, actor } = asked;
  return store.db.transaction().execute(async (db) => {
    const made = await requestErasure(db, asked);
    const details = { user, agent };
    await audit(db, { agent: agent ?? '*', actor, event: 'erasure-requested', subject: made.id, details, at: made.at });
    return made;
  });
}

export type EraseOptions = {
  readonly artifacts: Artifacts;
  readonly onProgress?: (what: string) => void;
  readonly signal?: AbortSignal;
};

/** Goes on with every erasure that is not done. False: another process is at it. */
export async function carryOutErasures(store: Store, options: EraseOptions): Promise<boolean> {
  const turn = await alone(store, 'erasures', async (lost) => {
    const signal = AbortSignal.any([lost, ...(options.signal === undefined ? [] : [options.signal])]);
    for (const erasure of await listErasures(store, { open: true })) {
      try {
        await carryOut(store, erasure, { ...options, signal });
      } catch (error) {
        // One that cannot go on does not keep the others; why is said with it.
        if (signal.aborted) throw error;
        await noteProblem(store, erasure.id, error instanceof Error ? error.message : String(error));
      }
    }
  });
  return turn !== null;
}

async function carryOut(store: Store, erasure: Erasure, options: EraseOptions): Promise<void> {
  const { artifacts, onProgress = () => {}, signal } = options;
  const held = await holdOn(store, erasure);
  if (held !== null) throw new ConflictError(`Legal hold ${held.id} keeps what is stored of this user.`);
  if (erasure.status === 'erasing') {
    await awaitWriters(store);
    await findConversations(store, erasure, (day) => onProgress(`looking at ${day}`));
    signal?.throwIfAborted();
    for (const held of await readDatasetsOf(store, erasure.user, erasure.agent, new Date(erasure.at))) {
      onProgress(`dataset ${held.id}`);
      await rewriteDataset(store, artifacts, erasure, held);
      signal?.throwIfAborted();
    }
    for (let removed = 0; ; ) {
      const counts = await removeConversations(store, erasure);
      if (counts === null) break;
      removed += counts.conversations;
      onProgress(`${removed} conversations removed`);
      signal?.throwIfAborted();
    }
    await removeSignalsBy(store, erasure);
    if (!(await moveErasure(store, erasure.id, 'erasing', 'sweeping'))) return;
  }
  await removeLateScores(store, erasure);
  let left = 0;
  for (const day of await touchedDays(store, erasure)) {
    onProgress(`messages of ${day.agent} on ${day.day}`);
    left += (await sweepMessages(store, day)).left;
    signal?.throwIfAborted();
  }
  if (left > 0) return waitWithSweep(store, erasure.id);
  onProgress('freeing their place');
  await vacuumAfter(store, erasure);
  if (!(await moveErasure(store, erasure.id, 'sweeping', 'done'))) return;
  const done = await readErasure(store, erasure.id);
  if (done === null) return;
  const { user, agent, counts, late, datasets } = done;
  const details = { user, agent, ...counts, late, datasets: datasets.map(({ id }) => id) };
  const about = { agent: agent ?? '*', actor: 'pawl', event: 'erasure-done', subject: erasure.id, details };
  await audit(store.db, { ...about, at: Date.now() });
}
