import validator from 'validator';
import { describe, expect, test } from 'vitest';
import { redact } from '../collect/redact/redact.ts';
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
  { role: 'user', content: 'I am [EMAIL_1], card [CARD_1], key [SECRET_1].' },
  call('{"email":"[EMAIL_1]"}'),
  { role: 'tool', tool_call_id: 'c1', content: '{"users":{"[EMAIL_1]":1,"[EMAIL_2]":2},"card":"[CARD_1]"}' },
  { role: 'assistant', content: 'Found [EMAIL_1].' },
];
const textOf = (messages: readonly RowMessage[]) => JSON.stringify(messages);
const filled = (trajectory: string, seed = 1) => examplesOf(row(trajectory, conversation), seed)[0]!.messages;

describe('filling masks', () => {
  test('puts a value of the same kind in place of each: redacting again gives the masks back', () => {
    for (const kind of ['EMAIL', 'CARD', 'SECRET', 'PHONE', 'IP', 'MAC', 'IBAN', 'US_SSN', 'UK_NINO']) {
      for (let seed = 0; seed < 50; seed++) {
        const text = `One [${kind}_1] here.`;
        const value = fill(text, seed, 'a');
        expect([kind, value.includes(`[${kind}`)]).toEqual([kind, false]);
        expect([value, redact(value, {})]).toEqual([value, text]);
      }
    }
    expect(textOf(filled('a'))).not.toMatch(/\[(EMAIL|CARD|SECRET)/);
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

  test('rows from before placeholders had numbers are filled as they were', () => {
    const older = '{"[email]":1,"[email] 2":2,"to":"[email]"}';
    const { to, ...users } = JSON.parse(fill(older, 1, 'a'));
    expect(Object.keys(users)[0]).toBe(to);
    expect(new Set(Object.keys(users)).size).toBe(2);
    expect(fill('[email]', 1, 'a')).toBe(to);
  });

  test('a resident number stays a mask, since none can be invented that is nobody’s', () => {
    expect(fill('[KR_RRN] and [TODO_1]', 1, 'a')).toBe('[KR_RRN] and [TODO_1]');
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
