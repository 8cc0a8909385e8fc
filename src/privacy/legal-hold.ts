/** Placing and releasing a legal hold, each with its line in the audit log. While one stands, an erasure of the user waits. */
import { audit } from '../audit.ts';
import { NotFoundError } from '../errors.ts';
import { endHold, type LegalHold, placeHold } from '../store/legal-holds.ts';
import { type Store, storeError } from '../store/postgres.ts';

const together = <T>(store: Store, doing: string, work: (db: Store['db']) => Promise<T>): Promise<T> =>
  store.db
    .transaction()
    .execute(work)
    .catch((error) => {
      throw error instanceof NotFoundError ? error : storeError(error, doing);
    });

export const hold = (store: Store, given: Omit<LegalHold, 'id' | 'releasedAt'>): Promise<LegalHold> =>
  together(store, 'Placing a legal hold', async (db) => {
    const placed = await placeHold(db, given);
    const { id, user, agent, reason, actor, at } = placed;
    const about = { agent: agent ?? '*', actor, event: 'hold-placed', subject: id, at: at.getTime() };
    await audit(db, { ...about, details: { user, reason } });
    return placed;
  });

export const releaseHold = (store: Store, id: string, actor: string, at: Date): Promise<LegalHold> =>
  together(store, 'Releasing a legal hold', async (db) => {
    const ended = await endHold(db, id, at);
    if (ended === null) throw new NotFoundError(`There is no legal hold ${id} that stands.`);
    const about = { agent: ended.agent ?? '*', actor, event: 'hold-released', subject: id, at: at.getTime() };
    await audit(db, { ...about, details: { user: ended.user } });
    return ended;
  });
