import { readFileSync, writeFileSync } from 'node:fs';
import { always, type Fault } from '../fault.ts';
import { segmentsIn, withRecordsWaiting } from '../journal-files.ts';
import { now } from '../ledger.ts';

const recorderMs = 20_000;

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
    /** A recorder that takes another's place begins a segment of its own. */
    const beginSegment = async () => {
      if (await stage.gateway.replaceRecorder(recorderMs)) return;
      const what = `a recorder whose thread was ended had not taken up its work after ${recorderMs / 1000} s`;
      stage.ledger.findings.push({ at: now(), during: 'journal-swapped', what });
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
