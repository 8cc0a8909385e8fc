import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import type { JournalEntry, Signal } from '../collect/signal.ts';
import type { Turn } from '../collect/turn.ts';
import { feedback } from '../score/feedback.ts';
import { converse } from '../score/fixtures.ts';
import { scoreWindow } from '../score/run.ts';
import { toolUse } from '../score/tool-use.ts';
import { weighted } from '../score/weighted.ts';
import { giveConsent, withdrawConsent } from '../store/consents.ts';
import { entry, noon, sibling } from '../store/fixtures.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { withStore } from '../store/test-store.ts';
import { type Dataset, dataset as schema } from './dataset.ts';
import { datasetReader } from './read.ts';
import { curateWindow } from './run.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-pairs-'));
const home = openArtifacts({ home: folder });
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const window = {
  agent: 'desk',
  spec: weighted({ feedback: [1, feedback()] }),
  since: new Date(noon - 3_600_000),
  until: new Date(noon + 3_600_000),
  now: new Date(noon + 7_200_000),
};
const settings = { maxUserShare: 1, kAnonymity: 1 };

const said = (id: string, user: string, question: string, answer: string, fields: Partial<Turn> = {}): JournalEntry[] =>
  converse(question, [{ say: answer }], { trajectory: id, user, ...fields }).map((turn) => ({ kind: 'turn', turn }));
const about = (id: string, fields: Partial<Signal>): JournalEntry =>
  entry.signal({
    identity: `${id} ${JSON.stringify(fields)}`,
    user: null,
    target: { kind: 'trajectory', id },
    ...fields,
  });

let store: Store;
let dataset: Dataset;
beforeAll(async () => {
  store = await withStore();
  for (const user of ['ann', 'bob', 'cleo', 'dan', 'expert'])
    await giveConsent(store, 'desk', user, new Date(noon - 1000));
  await writeEntries(store, [
    // Two answers to one question, voted up and down by users of different conversations.
    ...said('up', 'ann', 'Where is [email]?', 'On its way to [email].'),
    ...said('down', 'bob', 'Where is [email]?', 'I do not know.'),
    about('up', { value: 1 }),
    about('down', { value: 0 }),
    // Nobody else was asked this.
    ...said('alone', 'ann', 'And now?', 'Soon.'),
    about('alone', { value: 1 }),
    // What the answers should have been: by the agent's own team, by somebody who agreed, and by somebody who did not.
    ...said('wrong', 'cleo', 'When?', 'Never.'),
    about('wrong', { value: null, correction: 'Tomorrow.' }),
    about('wrong', { value: null, correction: 'On Friday.', user: 'expert' }),
    about('wrong', { value: null, correction: 'Go away.', user: 'troll' }),
    // Never agreed; broken off; the same words as the answer.
    ...said('unasked', 'eve', 'Where is [email]?', 'Gone.'),
    about('unasked', { value: 0 }),
    ...said('cut', 'dan', 'Tell me all', 'It', { status: 'truncated' }),
    about('cut', { value: null, correction: 'It is a long story.' }),
    ...said('right', 'dan', 'Is it?', 'Yes.'),
    about('right', { value: null, correction: ' Yes. ' }),
  ]);
  await scoreWindow(store, window);
  dataset = await curateWindow(store, home, { ...window, settings });
});

test('pairs come from votes on answers to the same question and from corrections, and the funnel says what did not', () => {
  expect(schema.parse(dataset)).toEqual(dataset);
  expect(dataset.pairs).toEqual({
    rows: 3,
    sources: { correction: 2, votes: 1 },
    funnel: [
      {
        gate: 'consent',
        entered: 9,
        passed: 7,
        left: { 'corrected by somebody who has not agreed': 1, 'not given': 1 },
      },
      { gate: 'walls', entered: 7, passed: 7, left: {} },
      { gate: 'size', entered: 7, passed: 7, left: {} },
      { gate: 'answer', entered: 7, passed: 6, left: { 'its turn failed': 1 } },
      { gate: 'redaction', entered: 6, passed: 6, left: {} },
      { gate: 'confidentiality', entered: 6, passed: 6, left: {} },
      { gate: 'held out', entered: 6, passed: 6, left: {} },
      {
        gate: 'comparison',
        entered: 6,
        passed: 4,
        left: { 'no other answer to the question': 1, 'says what the answer says': 1 },
      },
      { gate: 'k-anonymity', entered: 4, passed: 4, left: {} },
      { gate: 'duplicates', entered: 4, passed: 4, left: {} },
      { gate: 'user share', entered: 4, passed: 4, left: {} },
      { gate: 'key share', entered: 4, passed: 4, left: {} },
      { gate: 'source share', entered: 4, passed: 4, left: {} },
    ],
  });
});

const pairsNow = async () => {
  const pairs = [];
  for await (const pair of datasetReader(store, home).pairs(dataset.id)) pairs.push(pair);
  return pairs.map(({ source, gap, prompt, chosen, rejected }) => [
    source,
    gap,
    prompt.at(-1)!.content,
    chosen.content,
    rejected.content,
  ]);
};

test('masks are filled alike in the question and both answers, and the file keeps them', async () => {
  const pairs = await pairsNow();
  const votes = pairs.find(([source]) => source === 'votes')!;
  const address = /Where is (.+@example\.\w+)\?/.exec(votes[2] as string)![1];
  expect(votes).toEqual(['votes', 1, `Where is ${address}?`, `On its way to ${address}.`, 'I do not know.']);
  expect(
    pairs
      .filter(([source]) => source === 'correction')
      .map(([, gap, , chosen, rejected]) => [gap, chosen, rejected])
      .sort(),
  ).toEqual([
    [1, 'On Friday.', 'Never.'],
    [1, 'Tomorrow.', 'Never.'],
  ]);
  const text = readFileSync(await home.file(dataset.artifact!), 'utf8');
  expect(text).toContain('[email]');
  expect(text).not.toMatch(/"(ann|bob|expert)"/);
});

test('answers that were asked for beside a turn are told apart by the reward, and pairs keep their group', async () => {
  const other = await withStore();
  const otherHome = openArtifacts({ home: join(folder, 'other') });
  await giveConsent(other, 'desk', 'ann', new Date(noon - 1000));
  const [asked] = converse('Where is order 7?', [{ say: [['get_order', '{"id":"7"}']] }], {
    trajectory: 'explored',
    user: 'ann',
  });
  const call = (args: string) => [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'get_order', arguments: args } }],
      },
      finishReason: 'tool_calls',
    },
  ];
  const unasked = converse('Hm?', [{ say: 'Yes.' }], { trajectory: 'unasked', user: 'eve' })[0]!;
  await writeEntries(other, [
    { kind: 'turn', turn: asked! },
    { kind: 'turn', turn: unasked },
    { kind: 'sibling', sibling: sibling(asked!, { choices: call('{"id":7}') }) },
    { kind: 'sibling', sibling: sibling(asked!) }, // words, which the reward has no part for
    { kind: 'sibling', sibling: sibling(unasked) },
  ]);
  const spec = weighted({ tools: [1, toolUse()] });
  const scored = { ...window, spec };
  expect(await scoreWindow(other, scored)).toMatchObject({ scored: 2, answers: 5 });
  expect(await scoreWindow(other, scored)).toMatchObject({ unchanged: 2, answers: 0 });
  const found = await curateWindow(other, otherHome, { ...scored, settings });
  expect(found.pairs).toMatchObject({ rows: 1, sources: { exploration: 1 } });
  expect(found.pairs.funnel[0]).toMatchObject({ gate: 'consent', entered: 5, passed: 3, left: { 'not given': 2 } });
  expect(found.pairs.funnel[7]).toMatchObject({ gate: 'comparison', entered: 3, passed: 2 });
  const pairs = [];
  for await (const pair of datasetReader(other, otherHome).pairs(found.id)) pairs.push(pair);
  expect(pairs).toMatchObject([
    {
      source: 'exploration',
      gap: 1,
      group: expect.stringMatching(/^[0-9a-f]{32}$/),
      chosen: { tool_calls: [{ function: { arguments: '{"id":7}' } }] },
      rejected: { tool_calls: [{ function: { arguments: '{"id":"7"}' } }] },
    },
  ]);
});

test('every conversation of a pair is in the lineage, good or not', async () => {
  const lineage = await store.pool.query('select trajectory from pawl.dataset_rows where dataset = $1', [dataset.id]);
  expect(lineage.rows.map(({ trajectory }) => trajectory).sort()).toEqual(['alone', 'down', 'up', 'wrong']);
});

test('nobody fills the pairs alone', async () => {
  const few = await curateWindow(store, home, { ...window, settings: { maxUserShare: 0.34, kAnonymity: 1 } });
  // cleo's two corrections are of one answer; a share of a third of three pairs is one.
  expect(few.pairs).toMatchObject({ rows: 2 });
  expect(few.pairs.funnel.at(-3)).toMatchObject({ left: { 'over 34% from one user': 1 } });
});

test('a pair is not learned from any more when either side’s user, or who corrected, withdraws', async () => {
  await withdrawConsent(store, 'desk', 'expert', new Date(noon + 60_000));
  expect((await pairsNow()).map(([, , , chosen]) => chosen)).not.toContain('On Friday.');
  await withdrawConsent(store, 'desk', 'bob', new Date(noon + 60_000));
  expect((await pairsNow()).map(([source, , , chosen]) => [source, chosen])).toEqual([['correction', 'Tomorrow.']]);
});
