import { readFileSync, writeFileSync } from 'node:fs';
import { always, type Fault } from '../fault.ts';
import { segmentsIn, withRecordsWaiting } from '../journal-files.ts';

export const journalFlipped: Fault = {
  name: 'journal-flipped',
  does: 'kill -9, then one bit of one waiting record is flipped',
  heals: 'the scan skips the record',
  costs: 'that record and no other: its name is entered as destroyed',
  parts: ['gateway', 'database', 'disk'],
  holdMs: [200, 800],
  excuses: ['away'],
  unable: always,
  async inject(stage, random) {
    const destroyed = await withRecordsWaiting(stage, () => {
      const segment = segmentsIn(stage.journal).at(-1);
      if (segment === undefined || segment.records.length === 0) return [];
      const record = random.pick(segment.records.slice(-20));
      const bytes = readFileSync(segment.path);
      const at = random.integer(record.start, record.end - 1);
      bytes[at] = bytes[at]! ^ (1 << random.integer(0, 7));
      writeFileSync(segment.path, bytes);
      return record.names;
    });
    return { detail: destroyed.length === 0 ? 'nothing in the journal' : '1 record', destroyed, heal: () => {} };
  },
};
