/** How several processes on one port are, taken together. */
import type { RecorderStats } from '../collect/recorder.ts';
import type { FamilyHealth, MemberHealth } from './family-words.ts';

/** Members by their number; null: it does not answer. */
export function healthOfAll(members: ReadonlyMap<number, MemberHealth | null>): FamilyHealth {
  const known = [...members].flatMap(([number, health]) => (health === null ? [] : [{ number, ...health }]));
  const silent = [...members].filter(([, health]) => health === null).map(([number]) => number);
  return {
    problems: [
      ...silent.map((number) => `process ${number} does not answer; it is started again if it has died`),
      ...known.flatMap(({ number, problems }) => problems.map((problem) => `process ${number}: ${problem}`)),
    ],
    recording: known.map(({ recording }) => recording).reduce<RecorderStats | null>(added, null),
    processes: known.map(({ number, pid, problems }) => ({ number, pid, problems })),
  };
}

const addCounts = <T extends Readonly<Record<string, number>>>(a: T, b: T): T =>
  Object.fromEntries(
    [...new Set([...Object.keys(a), ...Object.keys(b)])].map((key) => [key, (a[key] ?? 0) + (b[key] ?? 0)]),
  ) as T;

/** Counts add up; the slowest and the worst speak for all. */
function added(a: RecorderStats | null, b: RecorderStats): RecorderStats {
  if (a === null) return b;
  const { dropped, redactions, found, sinkUp, diskOk, sinkLagMs, ...counts } = b;
  const { dropped: _, redactions: __, found: ___, sinkUp: ____, diskOk: _____, sinkLagMs: ______, ...before } = a;
  return {
    ...addCounts(before, counts),
    dropped: addCounts(a.dropped, dropped),
    redactions: addCounts(a.redactions, redactions),
    found: [...a.found, ...found],
    sinkUp: a.sinkUp && sinkUp,
    diskOk: a.diskOk && diskOk,
    sinkLagMs: Math.max(a.sinkLagMs, sinkLagMs),
  };
}
