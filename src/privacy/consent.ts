/**
 * What a user says about their conversations, and the line about it in the audit log, together or not at all. To learn from them,
 * to take them abroad and to learn across tenants are three things; the first is consents.ts's, the others purposes.ts's.
 */
import type { Consent } from '../collect/trajectory.ts';
import { audit } from '../deploy/audit.ts';
import { type ConsentRecord, giveConsent, readConsent, withdrawConsent } from '../store/consents.ts';
import { type Store, storeError } from '../store/postgres.ts';
import {
  givePurpose,
  type Purpose,
  type PurposeRecord,
  purposes,
  readPurposes,
  withdrawPurpose,
} from '../store/purposes.ts';

export const consentPurposes = ['learn', ...purposes] as const;
export type ConsentPurpose = (typeof consentPurposes)[number];

/** Consent to learn, and beside it what was said about the other purposes. */
export type WholeConsent = ConsentRecord & { readonly others: readonly PurposeRecord[] };

export async function wholeConsent(store: Pick<Store, 'db'>, agent: string, user: string): Promise<WholeConsent> {
  const said = await readConsent(store, agent, user);
  const nothing = { agent, user, now: 'unknown' as const, givenAt: null, withdrawnAt: null };
  return { ...(said ?? nothing), others: await readPurposes(store, agent, user) };
}

const stands = (consent: WholeConsent, purpose: ConsentPurpose): Consent =>
  purpose === 'learn' ? consent.now : consent.others.find((one) => one.purpose === purpose)!.now;

export type Said = {
  readonly agent: string;
  /** Hash. */
  readonly user: string;
  readonly purpose: ConsentPurpose;
  readonly says: 'given' | 'withdrawn';
  readonly actor: string;
  readonly at: Date;
};

/** Saying again what stands is no event. */
export const sayConsent = (store: Store, { agent, user, purpose, says, actor, at }: Said): Promise<WholeConsent> =>
  store.db
    .transaction()
    .execute(async (db) => {
      const before = stands(await wholeConsent({ db }, agent, user), purpose);
      if (purpose === 'learn') await (says === 'given' ? giveConsent : withdrawConsent)({ db }, agent, user, at);
      else await change(db, says, { agent, user, purpose, at });
      const now = await wholeConsent({ db }, agent, user);
      const event = { agent, actor, event: `consent-${says}`, subject: user, details: { purpose }, at: at.getTime() };
      if (stands(now, purpose) !== before) await audit(db, event);
      return now;
    })
    .catch((error) => {
      throw storeError(error, 'Recording consent');
    });

const change = (
  db: Store['db'],
  says: Said['says'],
  said: { readonly agent: string; readonly user: string; readonly purpose: Purpose; readonly at: Date },
): Promise<PurposeRecord> => (says === 'given' ? givePurpose(db, said) : withdrawPurpose(db, said));
