/** Giving people access and taking it away, each with its row in the audit log. */
import { audit } from '../audit.ts';
import { type Access, createAccess, revokeAccess } from '../store/access.ts';
import type { Store } from '../store/postgres.ts';

export const grantAccess = (
  store: Store,
  asked: Pick<Access, 'name' | 'role'>,
  actor: string,
  at: number,
): Promise<{ readonly access: Access; readonly token: string }> =>
  store.db.transaction().execute(async (db) => {
    const made = await createAccess(db, asked);
    const { id, name, role } = made.access;
    await audit(db, { agent: '*', actor, event: 'access-created', subject: id, details: { name, role }, at });
    return made;
  });

/** null: there is no such one. Doing it twice leaves one row in the audit log. */
export const withdrawAccess = (store: Store, id: string, actor: string, at: number): Promise<Access | null> =>
  store.db.transaction().execute(async (db) => {
    const { access, changed } = (await revokeAccess(db, id)) ?? { access: null, changed: false };
    if (access === null || !changed) return access;
    const { name, role } = access;
    await audit(db, { agent: '*', actor, event: 'access-revoked', subject: id, details: { name, role }, at });
    return access;
  });
