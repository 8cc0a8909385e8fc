import { appendFileSync, readFileSync } from 'node:fs';
import { always, type Fault } from '../fault.ts';
import { segmentsIn, withRecordsWaiting } from '../journal-files.ts';

export const journalTorn: Fault = {
  name: 'journal-torn',
  does: 'kill -9, then the newest segment ends in part of a record, as a crash in the middle of a write leaves it',
  heals: 'the scan skips the torn tail',
  costs: 'no more than the kill: the torn bytes are the harness’s own',
  parts: ['gateway', 'database', 'disk'],
  holdMs: [200, 800],
  excuses: ['away'],
  unable: always,
  async inject(stage, random) {
    const detail = await withRecordsWaiting(stage, () => {
      const segment = segmentsIn(stage.journal).at(-1);
      const record = segment?.records.at(-1);
      if (segment === undefined || record === undefined) return 'nothing in the journal';
      const bytes = readFileSync(segment.path).subarray(record.start, record.end);
      const part = bytes.subarray(0, random.integer(1, bytes.length - 1));
      appendFileSync(segment.path, part);
      return `${part.length} of ${bytes.length} bytes`;
    });
    return { detail, heal: () => {} };
  },
};
