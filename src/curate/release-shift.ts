/** A person has looked at a shift (shifts.ts) and lets what came until then be learned from; the audit log has who and why. */
import { audit } from '../audit.ts';
import { NotFoundError } from '../errors.ts';
import { listKeys } from '../store/keys.ts';
import { type Store, storeError } from '../store/postgres.ts';
import { type ShiftOf, writeShiftRelease } from '../store/shifts.ts';

/** A release of a key that does not exist would wait for ever, and look as if something had been done. */
export async function needKey(store: Store, { agent, key }: Pick<ShiftOf, 'agent' | 'key'>): Promise<void> {
  if (!(await listKeys(store, { agent })).some(({ id }) => id === key))
    throw new NotFoundError(
      `Agent ${agent} has no key ${key}; \`pawl curate check\` names the keys that wait, \`pawl keys list\` all of them.`,
    );
}

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
