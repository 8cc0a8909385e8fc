import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { normalForm } from './normal-form.ts';

test.each(['', 'ＡＢＣ ｶﾞ ﬁ ½ é e\u0301 \u1e9b\u0323 ำ 각 각', `a${'\u0301\u0323'.repeat(14)}b`, '\ud83d \0 👩‍👩‍👧'])(
  '%j is in the form that Unicode says',
  (text) => {
    expect(normalForm(text)).toBe(text.normalize('NFKC'));
  },
);

function timeOf(text: string): number {
  const started = process.cpuUsage();
  normalForm(text);
  const { user, system } = process.cpuUsage(started);
  return Math.max(4, (user + system) / 1000);
}

test.each(['\u0301\u0323', '\u0301\uff9e', '\u0301\u0e33', 'é\u0323', '\u0344\u0f73'])(
  '%j over and over takes time in proportion',
  (piece) => {
    const [few, many] = [3_000, 24_000].map((count) =>
      Math.min(timeOf(piece.repeat(count)), timeOf(piece.repeat(count))),
    );
    expect(many! / few!).toBeLessThan(24); // 8 in proportion, 64 where each is moved past all the others
  },
);

test('nothing else puts text of strangers into a form of Unicode', () => {
  const source = join(import.meta.dirname, '..');
  const others = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name) && !name.includes('.test.') && !name.endsWith('normal-form.ts'))
    .filter((name) => readFileSync(join(source, name), 'utf8').includes('.normalize('));
  expect(others).toEqual([]);
});
