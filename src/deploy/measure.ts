/** What is measured of a rollout's two releases, for decide.ts and for looking on. The numbers are store/measures.ts's. */
import { countSlow, readCalls, readSaid, type Window } from '../store/measures.ts';
import type { Store } from '../store/postgres.ts';
import { readRelease } from '../store/releases.ts';
import { type Measurements, measure } from './checks/all.ts';
import type { Both, Sides } from './checks/check.ts';
import { isOpen, type Rollout, weightOf } from './rollout.ts';

export async function measureRollout(store: Store, rollout: Rollout, now: number): Promise<Measurements> {
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
  return measure(
    sidesOf(store, settings, {
      baseline: { ...window, release: baseline.name, since: baselineSince },
      candidate: { ...window, release: candidate.name, since },
    }),
  );
}

function sidesOf(store: Store, settings: Rollout['settings'], windows: Both<Window>): Sides {
  const both =
    <T>(read: (window: Window) => Promise<T>) =>
    async (): Promise<Both<T>> => ({
      baseline: await read(windows.baseline),
      candidate: await read(windows.candidate),
    });
  return {
    settings,
    calls: once(both((window) => readCalls(store, window))),
    said: once(both((window) => readSaid(store, window, settings.outcome))),
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
