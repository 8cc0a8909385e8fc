import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { hashWord, type Signature, signatureOf, similarity } from './minhash.ts';
import { createWordings, wordingOf } from './near-duplicates.ts';
import { openShelf, type Shelf } from './shelf.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-near-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** In this order; in pages of which the shelf holds so many. */
async function firstOfAlike(wordings: readonly Signature[], most: number, held = 8): Promise<boolean[]> {
  const shelves: Shelf[] = [];
  const all = createWordings(() => {
    shelves.push(openShelf(folder, held));
    return shelves.at(-1)!;
  });
  for (const wording of wordings) all.add(wording);
  const order = Uint32Array.from(wordings, (_, i) => i);
  const first = await all.firstOfAlike(order, most);
  for (const shelf of shelves) shelf.drop();
  return [...first].map((one) => one === 1);
}

const long = Array.from({ length: 200 }, (_, i) => `word${i}`).join(' ');
const said = (question: string, answer: string) =>
  wordingOf({
    threads: [
      {
        messages: [
          { role: 'system', content: 'ignored' },
          { role: 'user', content: question },
          { role: 'assistant', content: answer },
        ],
        tools: [],
        answers: [],
      },
    ],
  });

test('of conversations that differ in a word the first is kept; another question, or another order, is another one', async () => {
  const wordings = [
    said(`Hello. ${long}`, 'Yes.'),
    said(`Hello! ${long}`, 'yes'), // the same words
    said(`Hallo. ${long}`, 'Yes.'), // one run of three in two hundred differs
    said(`Hello. ${long.split(' ').reverse().join(' ')}`, 'Yes.'),
    said('Where is order 7?', 'Sent.'),
    said('Where is order 8?', 'Sent.'),
  ];
  expect(await firstOfAlike(wordings, 0.9)).toEqual([true, false, false, true, true, true]);
  expect(await firstOfAlike([...wordings].reverse(), 0.9)).toEqual([true, true, true, true, false, false]);
});

test('among thousands, those kept are those that comparing each with each keeps', async () => {
  // Twenty texts, each in a hundred forms: some differ in one word of a hundred, some in a fifth of them.
  const wordings = Array.from({ length: 2000 }, (_, i) => {
    const [text, form] = [i % 20, Math.floor(i / 20)];
    const changed = form % 4 === 0 ? 20 : 1;
    return signatureOf(
      Array.from({ length: 100 }, (_, w) =>
        hashWord((w * 7 + form) % 100 < changed ? `${text} ${w} ${form % 7}` : `${text} ${w}`),
      ),
    );
  });
  const kept: Signature[] = [];
  const expected = wordings.map((wording) => {
    const isFirst = kept.every((one) => similarity(one, wording) < 0.9);
    if (isFirst) kept.push(wording);
    return isFirst;
  });
  expect(await firstOfAlike(wordings, 0.9, 1)).toEqual(expected);
  expect(kept.length).toBeGreaterThan(20);
  expect(kept.length).toBeLessThan(1000);
});
