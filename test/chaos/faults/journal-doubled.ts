import { copyFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { always, type Fault } from '../fault.ts';
import { segmentsIn, withRecordsWaiting } from '../journal-files.ts';

export const journalDoubled: Fault = {
  name: 'journal-doubled',
  does: 'kill -9, then the newest segment is there twice, as after a restore from a backup',
  heals: 'the database recognises what it has',
  costs: 'no more than the kill, and nothing twice',
  parts: ['gateway', 'database', 'disk'],
  holdMs: [200, 800],
  excuses: ['away'],
  unable: always,
  async inject(stage) {
    const detail = await withRecordsWaiting(stage, () => {
      const segment = segmentsIn(stage.journal).at(-1);
      if (segment === undefined) return 'nothing in the journal';
      const next = String(Number.parseInt(basename(segment.path), 10) + 1).padStart(12, '0');
      copyFileSync(segment.path, join(stage.journal, `${next}.journal`));
      return `${segment.records.length} records`;
    });
    return { detail, heal: () => {} };
  },
};
