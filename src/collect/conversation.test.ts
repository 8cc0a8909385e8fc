import { describe, expect, test } from 'vitest';
import { BadLine, maxLineBytes, readConversation } from './conversation.ts';
import { cutLines } from './cut-lines.ts';

const context = { agent: 'desk', origin: 'production', secret: 's' } as const;
const call = { id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } };
const messages = [
  { role: 'system', content: 'Be kind.' },
  { role: 'user', content: 'Where is it?' },
  { role: 'assistant', content: null, tool_calls: [call] },
  { role: 'tool', tool_call_id: 'c1', content: 'On its way' },
  { role: 'assistant', content: 'On its way.' },
];
const read = (line: object, more: Partial<Parameters<typeof readConversation>[1]> = {}) =>
  readConversation(JSON.stringify(line), { ...context, ...more });
const at = Date.UTC(2026, 4, 20, 12);

describe('a line of messages', () => {
  test('becomes a turn for each answer, which saw what came before it', () => {
    const { turns } = read({ messages, tools: [{ type: 'function' }], user: 'ann', task_type: 'parcel' }).entries(at);
    expect(turns).toHaveLength(2);
    expect(turns[0]).toMatchObject({
      user: 'ann',
      startedAt: at,
      content: {
        request: { messages: messages.slice(0, 2), tools: [{ type: 'function' }], metadata: { task_type: 'parcel' } },
        choices: [{ message: messages[2], finishReason: 'tool_calls' }],
      },
    });
    expect(turns[1]).toMatchObject({
      startedAt: at + 1000,
      content: { request: { messages: messages.slice(0, 4) }, choices: [{ finishReason: 'stop' }] },
    });
  });

  test('gives the same ids each time, and goes on where the conversation was shorter', () => {
    const ids = (line: object) =>
      read(line)
        .entries(at)
        .turns.map(({ id }) => id);
    const first = ids({ id: 'order-1', messages: messages.slice(0, 3) });
    const whole = ids({ id: 'order-1', messages });
    expect(whole).toEqual(ids({ id: 'order-1', messages }));
    expect(whole[0]).toBe(first[0]);
    expect(new Set(whole).size).toBe(2);
    expect(read({ messages }).trajectory).toBe(read({ messages }).trajectory);
    expect(read({ messages }).trajectory).not.toBe(read({ messages, user: 'bob' }).trajectory);
    expect(read({ messages }, { agent: 'shop' }).trajectory).not.toBe(read({ messages }).trajectory);
  });

  test('carries what is known of how it ended', () => {
    const line = { messages, reward: 1, outcomes: { minutes: 12 }, feedback: 'down', user: 'ann' };
    const label = { score: 0.5, parts: { tone: 1 }, reviewer: 'rita', comment: 'curt' };
    const { signals } = read({ ...line, label }).entries(at);
    expect(signals.map(({ kind, name, value, user }) => [kind, name, value, user])).toEqual([
      ['outcome', 'minutes', 12, 'ann'],
      ['outcome', 'reward', 1, 'ann'],
      ['feedback', 'vote', 0, 'ann'],
      ['label', 'score', 0.5, 'rita'],
      ['label', 'part.tone', 1, 'rita'],
    ]);
    expect(new Set(signals.map(({ at: when }) => when))).toEqual(new Set([at + 2000]));
  });

  test('says when it began, in seconds, milliseconds or ISO 8601', () => {
    for (const given of [at / 1000, at, new Date(at).toISOString()]) expect(read({ messages, at: given }).at).toBe(at);
    expect(read({ messages }).at).toBeNull();
  });
});

test('a line of tau-bench has its task as a key and its reward as an outcome', () => {
  const { turns, signals } = read({ task_id: 7, trial: 2, reward: 0, traj: messages }).entries(at);
  expect(turns[0]!.keys).toEqual(['task:7', 'trial:2']);
  expect(signals).toMatchObject([{ kind: 'outcome', name: 'reward', value: 0 }]);
});

test.each([
  ['nonsense', 'no JSON object'],
  ['[]', 'no JSON object'],
  ['{"messages":"hi"}', 'messages'],
  ['{"messages":[{"role":"user","content":"hi"}]}', 'assistant'],
  [JSON.stringify({ messages, reward: 'good' }), 'reward'],
  [JSON.stringify({ messages, label: 1.7 }), 'label'],
  [JSON.stringify({ messages, id: 'a b' }), 'id'],
  [JSON.stringify({ messages, at: 4_000_000_000_000 }), 'at'],
  [JSON.stringify({ task_id: 1, reward: 1 }), 'messages'],
  [JSON.stringify({ messages: Array(1001).fill({ role: 'assistant', content: '' }) }), '1001 answers'],
  [`{"messages":[],"x":"${'x'.repeat(maxLineBytes)}"}`, 'more than 8 MB'],
])('a line that is no conversation says why: %.40s', (line, why) => {
  expect(() => readConversation(line, context)).toThrow(BadLine);
  expect(() => readConversation(line, context)).toThrow(why);
});

test('a conversation whose turns would repeat its words too often is refused', () => {
  const long = Array.from({ length: 500 }, () => ({ role: 'assistant', content: 'x'.repeat(10_000) }));
  expect(() => read({ messages: long })).toThrow('too long to be read turn by turn');
});

test('lines are cut from a stream of bytes wherever it breaks, and one without an end is not held whole', async () => {
  const bytes = Buffer.from('één\r\ntwo\n\nlast');
  const all: string[] = [];
  for await (const line of cutLines(Array.from(bytes, (byte) => Buffer.from([byte])) as never)) all.push(line);
  expect(all).toEqual(['één', 'two', '', 'last']);
  const endless: string[] = [];
  const chunks = [...Array.from({ length: 10 }, () => Buffer.from('xxxx')), Buffer.from('\nok')];
  for await (const line of cutLines(chunks as never, 5)) endless.push(line);
  expect(endless).toEqual(['xxxxxx', 'ok']);
  const marked: string[] = [];
  for await (const line of cutLines([Buffer.from('\ufeff{}\n\ufeff')] as never)) marked.push(line);
  expect(marked).toEqual(['{}', '\ufeff']);
});
