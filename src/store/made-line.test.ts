import { expect, test } from 'vitest';
import type { Turn } from '../collect/turn.ts';
import { createNames } from './content.ts';
import { turn } from './fixtures.ts';
import { makeLine } from './made-line.ts';
import { writeLines } from './record.ts';
import { readSignedLine } from './signed-line.ts';
import { withStore } from './test-store.ts';
import { readTurnRow } from './turn-rows.ts';

const naming = { names: createNames(''), isKnown: () => false };
const key = '01a1efed-ce1e-76ce-926d-1fcfbdeec7f3';
const made = (of: Turn) => {
  const { text, journalled } = makeLine(of, naming, key);
  const payload = Buffer.from(text);
  return { line: journalled(payload), read: readSignedLine(payload) };
};

const long = 'word '.repeat(300);
const choice = { index: 0, message: { role: 'assistant', content: 'On its way.' }, finishReason: 'stop' };
test.each<[string, Partial<Turn>]>([
  ['plain', {}],
  ['with messages of its own', { request: { messages: [{ role: 'user', content: long }], tools: [{ name: long }] } }],
  ['with tokens', { choices: [{ ...choice, tokenIds: [1, 2], logprobs: [-0.5, -1] }], promptTokenIds: [7] }],
  [
    'of odd texts',
    {
      agent: 'a\0',
      trajectory: '\ud800',
      user: '\0',
      release: 'b\0',
      error: 'a\0b \ud800',
      keys: ['\udc00'],
      redactions: { email: 2 },
    },
  ],
  ['of odd numbers', { startedAt: 1_763_200_000_000.75, latencyMs: -0, firstTokenMs: Number.NaN, promptTokens: null }],
])('a line that was made, %s, says what its bytes say', (_, fields) => {
  const { line, read } = made(turn(fields));
  const { kind, agent, at, by, json, messages } = line;
  expect({ kind, agent, at, by, json, messages }).toEqual(read);
  expect(line.turn).toEqual(readTurnRow(read.json));
});

test('a turn that does not fit is journalled, and refused by whoever writes it into the database', async () => {
  const store = await withStore();
  const odd = makeLine(turn({ httpStatus: 0.5 }), naming, undefined);
  const good = makeLine(turn(), naming, undefined);
  const lines = [odd, good].map(({ text, journalled }) => journalled(Buffer.from(text)));
  expect(lines.map((line) => line.turn === undefined)).toEqual([true, false]);
  const { inserted, refused } = await writeLines(store, lines);
  expect(inserted).toBe(1);
  expect(refused).toMatchObject([{ line: lines[0], error: '0.5 is no value of type integer.' }]);
});

test('lines that come again are written once, though they are not looked for at first', async () => {
  const store = await withStore();
  const lines = Array.from({ length: 40 }, (_, i) => made(turn({ trajectory: `c${i % 3}`, keys: ['order:1'] })));
  const first = lines.slice(0, 25).map(({ line }) => line);
  expect(await writeLines(store, first)).toMatchObject({ inserted: 25, duplicates: 0, refused: [] });
  // After a restart: from the disk, some of them for the first time, one twice.
  const again = [...lines, lines[39]!].map(({ read: { by: _, ...read } }) => read);
  expect(await writeLines(store, again)).toEqual({ inserted: 15, duplicates: 26, refused: [] });
  const { rows } = await store.pool.query(
    'select id, turns, prompt_tokens, (select count(*) from pawl.turns x where x.trajectory = t.id) as there from pawl.trajectories t order by id',
  );
  expect(rows).toEqual([
    { id: 'c0', turns: 14, prompt_tokens: 14 * 12, there: 14 },
    { id: 'c1', turns: 13, prompt_tokens: 13 * 12, there: 13 },
    { id: 'c2', turns: 13, prompt_tokens: 13 * 12, there: 13 },
  ]);
});
