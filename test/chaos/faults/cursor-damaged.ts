import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Random } from '../../../src/simulate/random.ts';
import { always, type Fault } from '../fault.ts';
import { segmentsIn, withRecordsWaiting } from '../journal-files.ts';

const ahead = (text: string, by: number) => text.replace(/\d+/g, (digits) => String(Number(digits) + by));

const damages: Readonly<Record<string, (path: string, random: Random) => void>> = {
  missing: (path) => rmSync(path, { force: true }),
  empty: (path) => truncateSync(path, 0),
  torn: (path) => writeFileSync(path, readFileSync(path).subarray(0, readFileSync(path).length >> 1)),
  'a flipped bit': (path, random) => {
    const bytes = readFileSync(path);
    const at = random.integer(0, bytes.length - 1);
    bytes[at] = bytes[at]! ^ (1 << random.integer(0, 6));
    writeFileSync(path, bytes);
  },
  'ahead of the journal': (path) => writeFileSync(path, ahead(readFileSync(path, 'utf8'), 1000)),
  'bytes of a segment': (path) => {
    const [segment] = segmentsIn(join(path, '..'));
    if (segment !== undefined) copyFileSync(segment.path, path);
  },
  'an old copy': (path) => {
    if (existsSync(kept(path))) copyFileSync(kept(path), path);
  },
};

const kept = (path: string) => join(path, '..', '..', 'cursor-kept');

export const cursorDamaged: Fault = {
  name: 'cursor-damaged',
  does: 'kill -9, then the journal’s cursor is torn, flipped, missing, ahead, an old copy, or another file’s bytes; records wait',
  heals: 'the gateway sees that the position is not to be believed and reads again; the database knows what it has',
  costs: 'no more than the kill: no record is touched',
  parts: ['gateway', 'database', 'disk'],
  holdMs: [200, 800],
  excuses: ['away'],
  unable: always,
  async inject(stage, random) {
    const variant = random.pick(Object.keys(damages));
    await withRecordsWaiting(stage, () => {
      const name = readdirSync(stage.journal).find((file) => /^cursor\b/.test(file) && !file.endsWith('.new'));
      if (name === undefined) return;
      const path = join(stage.journal, name);
      const before = readFileSync(path);
      damages[variant]!(path, random);
      writeFileSync(kept(path), before);
    });
    return { detail: variant, heal: () => {} };
  },
};
