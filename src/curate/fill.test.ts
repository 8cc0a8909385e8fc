import validator from 'validator';
import { describe, expect, test } from 'vitest';
import { redact, redactors } from '../collect/redact/redact.ts';
import { examplesOf } from './examples.ts';
import { fill } from './fill.ts';
import type { Row, RowMessage } from './row.ts';

const call = (args: string): RowMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'c1', type: 'function', function: { name: 'find_user', arguments: args } }],
});
const row = (trajectory: string, messages: RowMessage[]): Row => ({
  ...{ trajectory, day: '2026-05-20', taskType: null, score: 1 },
  threads: [{ messages, tools: [], answers: [{ turn: 't', at: messages.length - 1, score: null, release: 'r' }] }],
});
const conversation: RowMessage[] = [
  { role: 'user', content: 'I am [email], card [card], key [secret].' },
  call('{"email":"[email]"}'),
  { role: 'tool', tool_call_id: 'c1', content: '{"users":{"[email]":1,"[email] 2":2},"card":"[card]"}' },
  { role: 'assistant', content: 'Found [email].' },
];
const textOf = (messages: readonly RowMessage[]) => JSON.stringify(messages);
const filled = (trajectory: string, seed = 1) => examplesOf(row(trajectory, conversation), seed)[0]!.messages;

describe('filling masks', () => {
  test('puts a value of the same kind in place of each: redacting again gives the masks back', () => {
    for (const kind of redactors.map(({ name }) => name)) {
      const text = `One [${kind}] here.`;
      const value = fill(text, 1, 'a');
      expect([kind, value.includes(`[${kind}]`)]).toEqual([kind, false]);
      expect(redact(value, {})).toBe(text);
    }
    expect(textOf(filled('a'))).not.toMatch(/\[(email|card|secret)\]/);
    expect(redact(filled('a'), {})).toEqual(conversation);
  });

  test('the same mask is the same value in all of a conversation, and JSON stays JSON', () => {
    const [said, asked, found, answer] = filled('a');
    const email = /I am (\S+),/.exec(said!.content!)![1]!;
    expect(asked).toMatchObject({ tool_calls: [{ function: { arguments: JSON.stringify({ email }) } }] });
    expect(answer!.content).toBe(`Found ${email}.`);
    const users = Object.keys(JSON.parse(found!.content!).users);
    expect(users[0]).toBe(email);
    expect(new Set(users).size).toBe(2);
    expect(JSON.parse(found!.content!).card).toBe(/card ([\d ]+),/.exec(said!.content!)![1]);
  });

  test('values are invented: addresses of example domains, Luhn-valid numbers of sandbox ranges', () => {
    for (let i = 0; i < 200; i++) {
      const email = fill('[email]', i, 'a');
      const card = fill('[card]', i, 'a');
      expect([email, validator.isEmail(email) && /@example\.(com|org|net)$/.test(email)]).toEqual([email, true]);
      expect([card, validator.isCreditCard(card) && /^(4000 00|4242 42|5555 55)/.test(card)]).toEqual([card, true]);
    }
  });

  test('another conversation or another seed gets other values, the same ones the same again', () => {
    expect(filled('a')).toEqual(filled('a'));
    // Its name is not what makes a conversation another: a window that is begun anew has other ids and the same words.
    expect(filled('b')).toEqual(filled('a'));
    expect(filled('a', 2)).not.toEqual(filled('a'));
    expect(new Set([fill('[email]', 1, 'a'), fill('[email]', 1, 'b'), fill('[email]', 2, 'a')]).size).toBe(3);
  });

  test('what is no mask stays as it is, and only then are exact tokens of use', () => {
    const exact = { model: 'm', prompt: [1], completion: [2] };
    const withTokens = (content: string): Row => {
      const { threads, ...rest } = row('a', [
        { role: 'user', content },
        { role: 'assistant', content: 'Yes.' },
      ]);
      return { ...rest, threads: [{ ...threads[0]!, answers: [{ ...threads[0]!.answers[0]!, exact }] }] };
    };
    const [plain] = examplesOf(withTokens('Is a[0] [sic] [x] [image]?'), 1);
    expect(plain).toMatchObject({ messages: [{ content: 'Is a[0] [sic] [x] [image]?' }, {}], exact: [exact] });
    expect(examplesOf(withTokens('Is [email] right?'), 1)[0]!.exact).toBeNull();
  });
});
