/** What is wrong with recording, in words. Answers go on whatever is said here; `degraded` is that something is said. */
import type { RecorderStats } from './recorder.ts';

/** A database further behind than this is said to be. */
const lateMs = 30_000;

export type Health = { readonly status: 'ok' | 'degraded'; readonly problems: readonly string[] };

type Facts = Pick<RecorderStats, 'diskOk' | 'sinkUp' | 'sinkLagMs' | 'corrupt' | 'refused' | 'found'> & {
  readonly dropped: Readonly<Record<string, number>>;
};

export function healthOf(recording: Facts, linesLost = 0): Health {
  const dropped = Object.entries(recording.dropped).filter(([, count]) => count > 0);
  const total = dropped.reduce((sum, [, count]) => sum + count, 0);
  const reasons = dropped.map(([reason, count]) => `${count} × ${reason}`).join(', ');
  const problems = [
    ...(recording.diskOk ? [] : ['the journal cannot be written (disk full?): answers go on, recording does not']),
    ...(recording.sinkUp ? [] : ['the database is away or silent: entries wait in the journal']),
    ...(recording.sinkLagMs < lateMs ? [] : [`the database is ${Math.round(recording.sinkLagMs / 1000)} s behind`]),
    ...(total > 0 ? [`${total} exchanges could not be recorded since the start (${reasons})`] : []),
    ...(recording.corrupt > 0 ? [`${recording.corrupt} damaged journal records were skipped`] : []),
    ...(recording.refused > 0
      ? [`${recording.refused} entries were refused by the database for good (journal/rejected.jsonl)`]
      : []),
    ...recording.found,
    ...(linesLost > 0 ? [`${linesLost} log lines could not be written`] : []),
  ];
  return { status: problems.length === 0 ? 'ok' : 'degraded', problems };
}
