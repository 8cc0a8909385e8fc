import { truncateSync } from 'node:fs';
import { always, type Fault } from '../fault.ts';
import { segmentsIn, withRecordsWaiting } from '../journal-files.ts';

export const journalTruncated: Fault = {
  name: 'journal-truncated',
  does: 'kill -9, then the newest segment loses its last bytes, as after a file system’s repair',
  heals: 'the scan ends at the last whole record',
  costs: 'the records in the bytes that are gone, and no other: their names are entered as destroyed',
  parts: ['gateway', 'database', 'disk'],
  holdMs: [200, 800],
  excuses: ['away'],
  unable: always,
  async inject(stage, random) {
    const destroyed = await withRecordsWaiting(stage, () => {
      const segment = segmentsIn(stage.journal).at(-1);
      if (segment === undefined) return [];
      const size = Math.max(0, segment.size - random.integer(1, 4000));
      truncateSync(segment.path, size);
      return segment.records.filter(({ end }) => end > size).map(({ names }) => names);
    });
    return { detail: `${destroyed.length} records`, destroyed: destroyed.flat(), heal: () => {} };
  },
};
