/**
 * A contender that plays only what it has not played before. What decides an answer is in the key: the release and its
 * weights, the case, the number of attempts, the seed, how it is sampled, and the world it is played in. So a second candidate
 * does not make the baseline play again, and an evaluation that was killed goes on where it was. An attempt that broke is not
 * kept. A grader whose code changes is not in the key; another `--seed` plays anew.
 */
import { createHash } from 'node:crypto';
import { type Environment, toolSpec } from '../simulate/environment.ts';
import { readPlayed, savePlayed } from '../store/played.ts';
import type { Store } from '../store/postgres.ts';
import type { Attempt, Contender } from './match.ts';
import { entriesOf, type Suite } from './suite.ts';

export type Kept = {
  readonly store: Store;
  readonly agent: string;
  readonly release: { readonly name: string; readonly checkpoint: string | null };
  readonly suite: Suite<unknown>;
  /** Whatever else decides the answers. */
  readonly how: Readonly<Record<string, unknown>>;
  /** Whether what is kept may be used; else it is only kept for later. */
  readonly reuse: boolean;
};

/** What a model sees of an environment. */
export const environmentMark = (environment: Environment<unknown, unknown> | undefined): unknown =>
  environment === undefined
    ? null
    : [
        environment.name,
        environment.system,
        environment.tools.map((one) => toolSpec(one as never)),
        environment.limits,
      ];

export function keptContender(kept: Kept, make: (suite: Suite<unknown>) => Contender): Contender {
  const { store, agent, release, suite, how, reuse } = kept;
  return {
    name: release.name,
    async play(playing) {
      const { attempts, seed, onProgress } = playing;
      const about = JSON.stringify([agent, release.name, release.checkpoint, suite.kind, attempts, seed, how]);
      const entries = entriesOf(suite);
      const keys = entries.map((entry) =>
        createHash('sha256').update(about).update('\u0000').update(JSON.stringify(entry)).digest('hex'),
      );
      const known = reuse ? await readPlayed(store, keys) : new Map<string, Attempt[]>();
      const missing = entries.flatMap((_, i) => (known.has(keys[i]!) ? [] : [i]));
      const before = (entries.length - missing.length) * attempts;
      onProgress(before);
      if (missing.length > 0) {
        const contender = make(partOf(suite, missing));
        const played = await contender.play({ ...playing, onProgress: (count) => onProgress(before + count) });
        const whole = new Map<string, readonly Attempt[]>();
        for (const [at, i] of missing.entries()) {
          known.set(keys[i]!, [...played[at]!]);
          if (played[at]!.every(({ solved }) => solved !== null)) whole.set(keys[i]!, played[at]!);
        }
        await savePlayed(store, { agent, release: release.name, at: new Date() }, whole);
      }
      return keys.map((key) => known.get(key)!);
    },
  };
}

export const partOf = (suite: Suite<unknown>, indexes: readonly number[]): Suite<unknown> =>
  suite.kind === 'tasks'
    ? { ...suite, tasks: indexes.map((i) => suite.tasks[i]!) }
    : { ...suite, cases: indexes.map((i) => suite.cases[i]!) };
