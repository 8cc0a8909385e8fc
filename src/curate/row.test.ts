import { describe, expect, test } from 'vitest';
import { converse, orderTool } from '../score/fixtures.ts';
import type { Score } from '../score/score.ts';
import { noon, turn } from '../store/fixtures.ts';
import { examplesOf } from './examples.ts';
import { fingerprint, makeRow, type Row, row as schema } from './row.ts';

const score: Score & { total: number } = {
  agent: 'desk',
  trajectory: 'c',
  day: '2026-05-20',
  spec: 's',
  evidence: 'e',
  total: 0.9,
  measured: 1,
  parts: {},
  turns: [],
  at: noon,
};
const rowOf = (turns: ReturnType<typeof converse>, of = score): Row => {
  const made = makeRow(turns, of);
  if (made.kind === 'refused') throw new Error(made.reason);
  return schema.parse(JSON.parse(JSON.stringify(made.row)));
};
const turns = converse('Where is order 7?', [
  { say: [['get_order', '{"id":7}']], results: ['{"status":"sent"}'] },
  { say: 'It was sent.' },
]);

describe('a row', () => {
  test('is the conversation once, with each answer’s place and worth', () => {
    const worth = [{ turn: turns[0]!.id, value: 0.5, parts: { tools: 0.5 } }];
    const { threads, ...rest } = rowOf(turns, { ...score, turns: worth });
    expect(rest).toEqual({ trajectory: 'c', day: '2026-05-20', taskType: null, score: 0.9 });
    const call = { id: 'call_0_0', type: 'function', function: { name: 'get_order', arguments: '{"id":7}' } };
    expect(threads).toEqual([
      {
        messages: [
          { role: 'user', content: 'Where is order 7?' },
          { role: 'assistant', content: null, tool_calls: [call] },
          { role: 'tool', tool_call_id: 'call_0_0', content: '{"status":"sent"}' },
          { role: 'assistant', content: 'It was sent.' },
        ],
        tools: [orderTool],
        answers: [
          { turn: turns[0]!.id, at: 1, score: 0.5, release: 'base' },
          { turn: turns[1]!.id, at: 3, score: null, release: 'base' },
        ],
      },
    ]);
  });

  test('keeps exact tokens, and examples have them only where every answer does', () => {
    const exact = turns.map((one, k) => ({
      ...one,
      promptTokenIds: [1, 2, 3 + k],
      choices: [{ ...one.choices[0]!, tokenIds: [7, 8], logprobs: [-0.5, -1] }],
    }));
    expect(examplesOf(rowOf(exact), 1)[0]!.exact).toEqual([
      { model: 'small', prompt: [1, 2, 3], completion: [7, 8], logprobs: [-0.5, -1] },
      { model: 'small', prompt: [1, 2, 4], completion: [7, 8], logprobs: [-0.5, -1] },
    ]);
    expect(examplesOf(rowOf([exact[0]!, turns[1]!]), 1)[0]!.exact).toBeNull();
  });

  test('keeps what the model thought, and shows it to later answers only where the agent sent it back', () => {
    const thinking = turns.map((one, k) => ({
      ...one,
      choices: [{ ...one.choices[0]!, message: { ...one.choices[0]!.message, reasoning_content: `Thought ${k}` } }],
    }));
    const dropped = rowOf(thinking).threads[0]!;
    expect(dropped.answers.map(({ at, reasoning }) => [at, reasoning])).toEqual([
      [1, 'Thought 0'],
      [3, 'Thought 1'],
    ]);
    expect(JSON.stringify(dropped.messages)).not.toContain('Thought');
    const [first, second] = thinking as [(typeof thinking)[0], (typeof thinking)[0]];
    const messages = (second.request.messages as Record<string, unknown>[]).map((one) =>
      one.role === 'assistant' ? { ...one, reasoning: 'Thought 0' } : one,
    );
    const sent = rowOf([first, { ...second, request: { ...second.request, messages } }]).threads[0]!;
    expect(sent.messages[1]).toMatchObject({ role: 'assistant', reasoning_content: 'Thought 0' });
    expect(sent.messages[3]).toEqual({ role: 'assistant', content: 'It was sent.' });
    const masked = rowOf([
      {
        ...second,
        choices: [
          { ...second.choices[0]!, message: { role: 'assistant', content: 'Ok', thinking: 'Write to [email]' } },
        ],
      },
    ]);
    expect(examplesOf(masked, 1)[0]!.answers[0]!.reasoning).toMatch(/^Write to .+@example\./);
  });

  test('begins another thread where the agent forgot or changed what was said', () => {
    const summary = turn({
      startedAt: noon + 5000,
      request: { messages: [{ role: 'user', content: 'So far: order 7 was sent. When will it come?' }] },
    });
    const row = rowOf([...turns, summary]);
    expect(row.threads.map(({ messages, answers }) => [messages.length, answers.map(({ at }) => at)])).toEqual([
      [4, [1, 3]],
      [2, [1]],
    ]);
    expect(examplesOf(row, 1).map(({ id, quality, taskType }) => [id, quality, taskType])).toEqual([
      ['c', 0.9, 'unknown'],
      ['c#2', 0.9, 'unknown'],
    ]);
  });

  test('joins content in parts, and refuses what is more than text', () => {
    const said = (content: unknown) => [turn({ request: { messages: [{ role: 'user', content }] } })];
    const parts = [
      { type: 'text', text: 'Where is ' },
      { type: 'text', text: 'it?' },
    ];
    expect(rowOf(said(parts)).threads[0]!.messages[0]).toEqual({ role: 'user', content: 'Where is it?' });
    const picture = [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }];
    expect(makeRow(said(picture), score)).toEqual({ kind: 'refused', reason: 'holds more than text and tool calls' });
    expect(makeRow([], score)).toEqual({ kind: 'refused', reason: 'not a chat' });
  });

  test('knows the task type where the agent says it', () => {
    const tagged = turn({ request: { ...turn().request, metadata: { task_type: 'refund' } } });
    expect(rowOf([tagged]).taskType).toBe('refund');
  });
});

test('a fingerprint is the same for the same question and answer, whatever case and spaces', () => {
  const of = (question: string, answer: string) => fingerprint(rowOf(converse(question, [{ say: answer }])));
  expect(of('Where  is\nit? ', 'ON its way.')).toBe(of('where is it?', 'on its way.'));
  expect(of('where is it?', 'On its way.')).not.toBe(of('where is he?', 'On its way.'));
  expect(of('where is it?', 'On its way.')).not.toBe(of('where is it?', 'Lost.'));
});
