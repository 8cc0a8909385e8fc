/** A person has looked at a shift (shifts.ts) and lets what came until then be learned from; the audit log has who and why. */
import { audit } from '../audit.ts';
import { type Store, storeError } from '../store/postgres.ts';
import { type ShiftOf, writeShiftRelease } from '../store/shifts.ts';

export const releaseShift = (
  store: Store,
  of: ShiftOf,
  by: { readonly actor: string; readonly reason: string | null; readonly at: Date },
): Promise<void> =>
  store.db
    .transaction()
    .execute(async (db) => {
      await writeShiftRelease(db, of, by);
      const { agent, key, taskType } = of;
      const about = { agent, actor: by.actor, event: 'shift-released', subject: key, at: by.at.getTime() };
      await audit(db, { ...about, details: { taskType, reason: by.reason } });
    })
    .catch((error) => {
      throw storeError(error, 'Releasing a shift');
    });
