import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { always, type Fault } from '../fault.ts';
import { segmentsIn, withRecordsWaiting } from '../journal-files.ts';

export const journalSwapped: Fault = {
  name: 'journal-swapped',
  does: 'kill -9, then the two newest segments change names, as after a restore that went wrong; records wait in both',
  heals: 'the gateway sees that its position is of another file and reads both again',
  costs: 'no more than the kill and the crash of the recorder’s thread that makes the second segment: no byte is gone',
  parts: ['gateway', 'database', 'disk'],
  holdMs: [200, 800],
  excuses: ['away', 'not-recorded'],
  unable: always,
  async inject(stage) {
    /** A recorder that starts again begins a segment of its own. */
    const beginSegment = async () => {
      stage.gateway.signal('SIGUSR2');
      await sleep(500);
      await stage.gateway.journals(20_000);
    };
    const detail = await withRecordsWaiting(
      stage,
      () => {
        const [older, newer] = segmentsIn(stage.journal).slice(-2);
        if (older === undefined || newer === undefined) return 'only one segment';
        const bytes = readFileSync(older.path);
        writeFileSync(older.path, readFileSync(newer.path));
        writeFileSync(newer.path, bytes);
        return 'two segments';
      },
      beginSegment,
    );
    return { detail, heal: () => {} };
  },
};
