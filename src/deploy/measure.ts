/** What is measured of a rollout's two releases, for decide.ts and for looking on. The numbers are store/measures.ts's. */
import { countSlow, countUnits, readCalls, readSaid, type Window } from '../store/measures.ts';
import type { Store } from '../store/postgres.ts';
import { readRelease } from '../store/releases.ts';
import { readShadow } from '../store/shadows.ts';
import { readSignalValues } from '../store/signal-values.ts';
import { type Measurements, measure } from './checks/all.ts';
import type { Both, Sides } from './checks/check.ts';
import { readServed } from './first-words.ts';
import type { Release } from './release.ts';
import { isOpen, type Rollout, weightOf } from './rollout.ts';
import type { Sample } from './slice.ts';

export type Measured = {
  readonly checks: Measurements;
  /** The outcome of users with each release while each step lasted, for the promotion. */
  readonly steps: readonly Both<Sample>[];
};

export async function measureRollout(store: Store, rollout: Rollout, now: number): Promise<Measured> {
  const baseline = (await readRelease(store, { id: rollout.baseline }))!;
  const candidate = (await readRelease(store, { id: rollout.candidate }))!;
  const { settings, startedAt, endedAt } = rollout;
  // While a person holds a step its clock stands still; then all that users of the candidate have met counts.
  const since = rollout.stepSince ?? startedAt ?? now;
  const window = {
    agent: rollout.agent,
    until: isOpen(rollout) ? now : (endedAt ?? now),
    origin: settings.origin ?? 'production',
  };
  // At 100% nobody is left to compare with at the same time: the baseline's earlier steps must do.
  const baselineSince = weightOf(rollout) < 1 ? since : (startedAt ?? since);
  const checks = await measure(
    sidesOf(store, rollout, {
      baseline: { ...window, release: baseline.name, since: baselineSince },
      candidate: { ...window, release: candidate.name, since },
    }),
  );
  return { checks, steps: await outcomesOfSteps(store, rollout, window, { baseline, candidate }) };
}

/** What shadow traffic found, and the share of the baseline's own calls that failed meanwhile. */
export async function measureShadow(store: Store, rollout: Rollout, now: number) {
  const { agent, settings, stepSince, createdAt } = rollout;
  const shadow = await readShadow(store, rollout.id, settings);
  const baseline = (await readRelease(store, { id: rollout.baseline }))!;
  const window = { agent, since: stepSince ?? createdAt, until: now, origin: settings.origin ?? 'production' };
  const { calls, errors } = await readCalls(store, { ...window, release: baseline.name });
  return { shadow, baselineErrors: calls === 0 ? 0 : errors / calls };
}

async function outcomesOfSteps(
  store: Store,
  { settings, stepsAt }: Rollout,
  window: Omit<Window, 'release' | 'since'>,
  { baseline, candidate }: Both<Release>,
): Promise<Both<Sample>[]> {
  const { outcome, promotion } = settings;
  if (outcome === null || promotion.rule === 'checks') return [];
  const found: Both<Sample>[] = [];
  for (const [step, since] of stepsAt.entries()) {
    if (settings.steps[step]! >= 1) continue;
    const until = stepsAt[step + 1] ?? window.until;
    const of = async ({ name: release }: Release) =>
      (await readSaid(store, { ...window, release, since, until }, outcome)).outcome;
    found.push({ baseline: await of(baseline), candidate: await of(candidate) });
  }
  return found;
}

function sidesOf(store: Store, rollout: Rollout, windows: Both<Window>): Sides {
  const { settings } = rollout;
  const both =
    <T>(read: (window: Window) => Promise<T>) =>
    async (): Promise<Both<T>> => ({
      baseline: await read(windows.baseline),
      candidate: await read(windows.candidate),
    });
  return {
    settings,
    agent: rollout.agent,
    windows,
    share: weightOf(rollout),
    units: both((window) => countUnits(store, window)),
    calls: once(both((window) => readCalls(store, window))),
    said: once(both((window) => readServed(store, window, settings.outcome))),
    signals: (names, figureOf) => both((window) => readSignalValues(store, window, names, figureOf))(),
    slowerThan: (limitMs) => countSlow(store, windows.candidate, limitMs),
  };
}

function once<T>(read: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => {
    made ??= read();
    return made;
  };
}
