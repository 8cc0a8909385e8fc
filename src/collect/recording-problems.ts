/** What is wrong with recording, in words; answers go on whatever is said here. Pure: figures in, sentences out. */
import type { RecorderStats } from './recorder.ts';

/** A database further behind than this is said to be. */
const lateMs = 30_000;

type Figures = Pick<RecorderStats, 'diskOk' | 'sinkUp' | 'sinkLagMs' | 'corrupt' | 'refused' | 'found'> & {
  readonly dropped: Readonly<Record<string, number>>;
};

export function recordingProblems(stats: Figures): string[] {
  const dropped = Object.entries(stats.dropped).filter(([, count]) => count > 0);
  const total = dropped.reduce((sum, [, count]) => sum + count, 0);
  const reasons = dropped.map(([reason, count]) => `${count} × ${reason}`).join(', ');
  return [
    ...(stats.diskOk ? [] : ['the journal cannot be written (disk full?): answers go on, recording does not']),
    ...(stats.sinkUp ? [] : ['the database is away or silent: entries wait in the journal']),
    ...(stats.sinkLagMs < lateMs ? [] : [`the database is ${Math.round(stats.sinkLagMs / 1000)} s behind`]),
    ...(total > 0 ? [`${total} exchanges could not be recorded since the start (${reasons})`] : []),
    ...(stats.corrupt > 0 ? [`${stats.corrupt} damaged journal records were skipped`] : []),
    ...(stats.refused > 0
      ? [`${stats.refused} entries were refused by the database for good (journal/rejected.jsonl)`]
      : []),
    ...stats.found,
  ];
}
