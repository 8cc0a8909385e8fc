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
  touchedTables,
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
import { purge } from '../store/purge.ts';
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
    const removed: Erasure[] = [];
    const signal = AbortSignal.any([lost, ...(options.signal === undefined ? [] : [options.signal])]);
    for (const erasure of await listErasures(store, { open: true })) {
      try {
        if (await remove(store, erasure, { ...options, signal })) removed.push(erasure);
      } catch (error) {
        // One that cannot go on does not keep the others; why is said with it.
        if (signal.aborted) throw error;
        await noteProblem(store, erasure.id, error instanceof Error ? error.message : String(error));
      }
    }
    if (removed.length === 0) return;
    try {
      await finish(store, removed, options);
    } catch (error) {
      if (signal.aborted) throw error;
      for (const { id } of removed) {
        await noteProblem(store, id, error instanceof Error ? error.message : String(error));
        await waitWithSweep(store, id); // somebody is at these tables, and writing them anew is no small thing
      }
    }
  });
  return turn !== null;
}

/** False: something came so lately that it is looked at again. */
async function remove(store: Store, erasure: Erasure, options: EraseOptions): Promise<boolean> {
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
    if (!(await moveErasure(store, erasure.id, 'erasing', 'sweeping'))) return false;
  }
  await removeLateScores(store, erasure);
  let left = 0;
  for (const day of await touchedDays(store, erasure)) {
    onProgress(`messages of ${day.agent} on ${day.day}`);
    left += (await sweepMessages(store, day)).left;
    signal?.throwIfAborted();
  }
  if (left > 0) await waitWithSweep(store, erasure.id);
  return left === 0;
}

/** Tables that several lost something from are written anew once. */
async function finish(
  store: Store,
  removed: readonly Erasure[],
  { onProgress = () => {} }: EraseOptions,
): Promise<void> {
  onProgress('taking it out of the database’s files');
  const tables = new Set<string>();
  for (const erasure of removed) for (const table of await touchedTables(store, erasure)) tables.add(table);
  const bytes = await purge(store, [...tables]);
  for (const erasure of removed) {
    if (!(await moveErasure(store, erasure.id, 'sweeping', 'done'))) continue;
    const done = await readErasure(store, erasure.id);
    if (done === null) continue;
    const { user, agent, counts, late, datasets } = done;
    const details = { user, agent, ...counts, late, datasets: datasets.map(({ id }) => id), bytes };
    const about = { agent: agent ?? '*', actor: 'pawl', event: 'erasure-done', subject: erasure.id, details };
    await audit(store.db, { ...about, at: Date.now() });
  }
}
