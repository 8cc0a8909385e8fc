/**
 * What users got: success in production with the release that served before a rollout and with its candidate, all together
 * and by slice, beside what the golden set says. Figures to read, not to decide by: decide.ts has its own tests.
 *
 * before     users of the baseline while traffic was collected, before anybody had the candidate
 * baseline   users of the baseline while the candidate was rolled out
 * after      users of the candidate in that time; those of the baseline beside them had the same days
 */
import { wilson } from '../evaluate/compare.ts';
import type { Store } from '../store/postgres.ts';
import { readServed } from './first-words.ts';
import type { MeasuredOrigin, Rollout } from './rollout.ts';
import { nobody, type Sample, type Served, sampleOf, slicesThatCount, sliceTitle } from './slice.ts';

/** A user counts as one, with the mean of their outcomes; for such means Wilson's interval is rather too wide than too narrow. */
export type UserFigure = {
  readonly n: number;
  readonly success: number;
  readonly interval: readonly [number, number];
};

export type UserFigures = {
  readonly before: UserFigure | null;
  readonly baseline: UserFigure | null;
  readonly after: UserFigure | null;
};

export type Users = {
  /** Name of the outcome. */
  readonly outcome: string;
  readonly all: UserFigures;
  /** Those that hold a tenth of the users. */
  readonly slices: readonly ({ readonly slice: string } & UserFigures)[];
};

export type UsersOf = {
  readonly agent: string;
  readonly outcome: string;
  /** Names of the releases. */
  readonly baseline: string;
  readonly candidate: string;
  /** ms since epoch */
  readonly collected: { readonly since: number; readonly until: number };
  /** The traffic that is looked at: the kind the agent learns from. */
  readonly origin?: MeasuredOrigin; // production
  /** null: nobody got the candidate. */
  readonly rollout: Pick<Rollout, 'startedAt' | 'endedAt'> | null;
};

export async function measureUsers(store: Store, of: UsersOf, now: number): Promise<Users> {
  const { agent, outcome, baseline, candidate, collected, rollout, origin = 'production' } = of;
  const served = (release: string, { since, until }: UsersOf['collected']): Promise<Served> =>
    readServed(store, { agent, release, since, until, origin }, outcome);
  const before = await served(baseline, collected);
  if (rollout === null || rollout.startedAt === null) return usersFrom(outcome, before, unserved, unserved);
  const rolledOut = { since: rollout.startedAt, until: rollout.endedAt ?? now };
  return usersFrom(outcome, before, await served(baseline, rolledOut), await served(candidate, rolledOut));
}

const unserved: Served = { outcome: nobody, slices: [] };

export function usersFrom(outcome: string, before: Served, baseline: Served, after: Served): Users {
  const figures = (sample: (of: Served) => Sample): UserFigures => ({
    before: figure(sample(before)),
    baseline: figure(sample(baseline)),
    after: figure(sample(after)),
  });
  return {
    outcome,
    all: figures((of) => of.outcome),
    slices: slicesThatCount([before, baseline, after]).map((slice) => ({
      slice: sliceTitle(slice),
      ...figures((of) => sampleOf(of, slice)),
    })),
  };
}

function figure({ n, sum }: Sample): UserFigure | null {
  if (n === 0) return null;
  // The database adds in whatever order it reads; the last bit of a sum is no news.
  const success = Number((sum / n).toFixed(12));
  return { n, success, interval: wilson(success, n) };
}
