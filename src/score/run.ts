/**
 * Scores every trajectory of a window under one reward spec. Can be run again at any time and after any interruption: a
 * trajectory whose turns and signals are those of its score is left alone, one that got a late outcome or another turn is
 * scored again, and so is one where a scorer broke. Only these are read whole. Scorers that ask somebody are asked for a few
 * conversations at a time.
 */
import type { Origin } from '../collect/trajectory.ts';
import { latePages } from '../store/late-evidence.ts';
import type { Store } from '../store/postgres.ts';
import { readScoresOf, saveRewardSpec, saveScores } from '../store/scores.ts';
import { refreshStatistics } from '../store/statistics.ts';
import {
  batchesOf,
  type Placed,
  placedKey,
  readSignalsOf,
  readSizes,
  readTurnIds,
  readTurnsOf,
  type Window,
  windowPages,
  withCorrections,
} from '../store/window.ts';
import { planAnswers, scoreAnswers } from './answers.ts';
import { type Norms, normsOf } from './norms.ts';
import { evidenceOf, isBroken } from './score.ts';
import type { Cost, ScorerInput, Services } from './scorer.ts';
import { contextOf, describeSpec, type RewardSpec, scoreOf, usesLabels } from './weighted.ts';

export type ScoreWindow = {
  readonly agent: string;
  readonly spec: RewardSpec;
  /** Trajectories that started at this time or later … */
  readonly since: Date;
  /** … and before this time. */
  readonly until: Date;
  /** Those as well that started before the window, and about which something was said at this time or later, or that a scorer failed for. */
  readonly heardSince?: Date;
  readonly origin?: Origin; // production
  readonly now: Date;
  /** Lent to scorers that need more than the conversation. */
  readonly services?: Services;
  /** Conversations scored at a time. */
  readonly atOnce?: number; // 8
  /** Aborted, it ends after the batch it is in; what is scored stays. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (counts: ScoreCounts) => void;
};

export type ScoreCounts = {
  readonly trajectories: number;
  /** Had no score under this spec before. */
  readonly scored: number;
  /** Had one, from other evidence. */
  readonly rescored: number;
  readonly unchanged: number;
  /** Longer than `maxTurns`: not scored. */
  readonly tooLong: number;
  /** More bytes than are read of one trajectory: not scored. */
  readonly tooLarge: number;
  /** Nothing could be measured, whether that was found now or before: the same after an interruption. */
  readonly unmeasured: number;
  /** A scorer broke or took too long for these; the next run asks it again. */
  readonly broken: number;
  /** Single answers scored beside them, where a turn was answered more than once. */
  readonly answers: number;
};

/** A runaway loop is not a conversation; nobody learns from one, and it would fill the memory. */
export const maxTurns = 1000;

type Counts = { -readonly [Name in keyof ScoreCounts]: number };
const noCounts = (): Counts => ({
  ...{
    trajectories: 0,
    scored: 0,
    rescored: 0,
    unchanged: 0,
    tooLong: 0,
    tooLarge: 0,
    unmeasured: 0,
    broken: 0,
    answers: 0,
  },
});

type Pending = { readonly one: Placed; readonly isKnown: boolean; readonly input: ScorerInput };
type PendingPage = {
  /** Of conversations whose evidence is not that of their score, read whole. */
  batches(): AsyncGenerator<Pending[]>;
  readonly fit: readonly Placed[];
  readonly turnIds: ReadonlyMap<string, readonly string[]>;
};

async function* pagesOf(store: Store, { spec, heardSince, ...window }: PagedWindow): AsyncGenerator<Placed[]> {
  yield* windowPages(store, window);
  if (heardSince !== undefined)
    yield* latePages(store, {
      ...window,
      before: window.since,
      heardSince,
      labels: usesLabels(spec),
      spec: spec.version,
    });
}
type PagedWindow = Window & Pick<ScoreWindow, 'spec' | 'heardSince'>;

/** What there is to score, page by page. Counts what it passes. */
async function* pendingPages(
  store: Store,
  { agent, spec, since, until, heardSince, origin = 'production' }: ScoreWindow,
  norms: Norms,
  counts: Counts,
): AsyncGenerator<PendingPage> {
  for await (const page of pagesOf(store, {
    ...{ agent, origin, since, until, spec },
    ...(heardSince && { heardSince }),
  })) {
    counts.trajectories += page.length;
    const fit = page.filter(({ trajectory }) => trajectory.turns <= maxTurns);
    counts.tooLong += page.length - fit.length;
    const known = await readScoresOf(store, fit, spec.version);
    const turnIds = await readTurnIds(store, fit);
    const signals = await readSignalsOf(store, fit, turnIds, { labels: usesLabels(spec) });
    const compared = new Map<Placed, ReadonlyMap<string, number>>();
    for (const one of fit) compared.set(one, await norms.at(one.trajectory.startedAt));
    const pending = fit.filter((one) => {
      const key = placedKey(one);
      const evidence = evidenceOf({
        turnIds: turnIds.get(key) ?? [],
        signalIds: (signals.get(key) ?? []).map(({ id }) => id),
        norms: compared.get(one),
      });
      return known.get(key)?.evidence !== evidence;
    });
    counts.unchanged += fit.length - pending.length;
    const isPending = new Set(pending);
    counts.unmeasured += fit.filter((one) => !isPending.has(one) && known.get(placedKey(one))!.total === null).length;
    const sizes = await readSizes(store, pending);
    const readable = pending.filter((one) => sizes.get(placedKey(one)) !== null);
    counts.tooLarge += pending.length - readable.length;
    async function* batches(): AsyncGenerator<Pending[]> {
      for (const batch of batchesOf(readable, sizes)) {
        const turns = await readTurnsOf(store, batch);
        const keys = batch.map(placedKey);
        const heard = await withCorrections(store, agent, new Map(keys.map((key) => [key, signals.get(key) ?? []])));
        yield batch.map((one) => {
          const key = placedKey(one);
          const input = {
            trajectory: one.trajectory,
            turns: turns.get(key) ?? [],
            signals: heard.get(key) ?? [],
            norms: compared.get(one)!,
          };
          return { one, input, isKnown: known.has(key) };
        });
      }
    }
    yield { batches, fit, turnIds };
  }
}

export async function scoreWindow(store: Store, options: ScoreWindow): Promise<ScoreCounts> {
  const { agent, spec, origin = 'production', now, services = {}, atOnce = 8 } = options;
  const counts = noCounts();
  await saveRewardSpec(store, { version: spec.version, parts: describeSpec(spec), at: now });
  await refreshStatistics(store);
  const norms = normsOf(store, { agent, origin, spec, now });
  for await (const { batches, fit, turnIds } of pendingPages(store, options, norms, counts)) {
    for await (const batch of batches()) {
      const scores = await eachAtOnce(batch, atOnce, ({ one, input }) =>
        scoreOf(spec, input, { day: one.day, at: now.getTime() }, services),
      );
      await saveScores(store, scores);
      for (const { isKnown } of batch) counts[isKnown ? 'rescored' : 'scored']++;
      counts.unmeasured += scores.filter(({ total }) => total === null).length;
      counts.broken += scores.filter(isBroken).length;
      options.onProgress?.({ ...counts });
      options.signal?.throwIfAborted();
    }
    counts.answers += await scoreAnswers(store, { spec, services, now, placed: fit, turnIds });
  }
  return counts;
}

export type ScorePlan = {
  readonly trajectories: number;
  /** Would be scored, for the first time or again. */
  readonly pending: number;
  /** Single answers that would be, where a turn was answered more than once. */
  readonly answers: number;
  /** Calls to a judge: nothing for what is kept. */
  readonly calls: number;
  /** What they would cost, as far as prices are known. */
  readonly money: number;
  /** Of the calls, those without a price. */
  readonly unpriced: number;
};

/** What scoring the window would take. Asks nobody and writes nothing. */
export async function planScoring(store: Store, options: ScoreWindow): Promise<ScorePlan> {
  const { agent, spec, origin = 'production', now, services = {} } = options;
  const asking = spec.parts.filter(({ scorer }) => scorer.cost !== undefined);
  const counts = noCounts();
  const plan = { pending: 0, answers: 0, calls: 0, money: 0, unpriced: 0 };
  const norms = normsOf(store, { agent, origin, spec, now, keep: false });
  const signal = options.signal ?? new AbortController().signal;
  const add = ({ calls, money }: Cost) => {
    plan.calls += calls;
    plan.money += money ?? 0;
    if (money === null) plan.unpriced += calls;
  };
  for await (const { batches, fit, turnIds } of pendingPages(store, options, norms, counts)) {
    for await (const batch of batches()) {
      plan.pending += batch.length;
      for (const { input } of batch)
        for (const { scorer } of asking)
          add(
            await scorer.cost!(
              input,
              contextOf(input, services, () => signal),
            ),
          );
      options.onProgress?.({ ...counts });
      signal.throwIfAborted();
    }
    const { answers, costs } = await planAnswers(store, { spec, services, signal, placed: fit, turnIds });
    plan.answers += answers;
    for (const cost of costs) add(cost);
  }
  return { trajectories: counts.trajectories, ...plan };
}

/** In the order of the items, whichever is done first. */
async function eachAtOnce<T, R>(items: readonly T[], atOnce: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results = new Array<R>(items.length);
  let next = 0;
  const worker = async () => {
    for (let i = next++; i < items.length; i = next++) results[i] = await work(items[i]!);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  return results;
}
