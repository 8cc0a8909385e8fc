import { expect, test } from 'vitest';
import { piiSettings } from '../collect/redact/settings.ts';
import { anonymiseRow, openAnonymiser } from './anonymise.ts';
import type { Made, RowMessage } from './row.ts';

const exact = { model: 'm', prompt: [1], completion: [2] };
const made = (messages: RowMessage[]): Made => ({
  kind: 'row',
  row: {
    ...{ trajectory: 't', day: '2026-05-20', taskType: null, score: 1 },
    threads: [
      { messages, tools: [], answers: [{ turn: 'a', at: messages.length - 1, score: null, release: 'r', exact }] },
    ],
  },
});
const clean = async (messages: RowMessage[], given: object = {}) =>
  anonymiseRow(made(messages), await openAnonymiser(piiSettings.parse(given)));
const threadOf = (row: Made) => (row.kind === 'row' ? row.row.threads[0]! : null);

test('names in what was said are masked, with the same number in arguments and answers; instructions keep theirs', async () => {
  const thread = threadOf(
    await clean([
      { role: 'system', content: 'You work for Sarah Miller.' },
      { role: 'user', content: 'My name is Karen Jones, mail [EMAIL_1].' },
      {
        ...{ role: 'assistant', content: null },
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'find', arguments: '{"who":"Karen Jones"}' } }],
      },
      { role: 'tool', tool_call_id: 'c', content: '{"note":"Karen Jones, karen@example.com"}' },
      { role: 'assistant', content: 'Hello Karen Jones.' },
    ]),
  );
  expect(thread?.messages.map(({ content }) => content)).toEqual([
    'You work for Sarah Miller.',
    'My name is [PERSON_1], mail [EMAIL_1].',
    null,
    '{"note":"[PERSON_1], [EMAIL_2]"}', // whose the first was nobody knows any more
    'Hello [PERSON_1].',
  ]);
  expect(thread?.messages[2]).toMatchObject({ tool_calls: [{ function: { arguments: '{"who":"[PERSON_1]"}' } }] });
  expect(thread?.answers[0]?.exact).toBeUndefined();
});

test('what is on the allow-list stays, and costs no exact tokens', async () => {
  const said: RowMessage[] = [
    { role: 'system', content: 'Mail to help@acme.com or call +1 212 555 0142.' },
    { role: 'assistant', content: 'Write to HELP@acme.com.' },
  ];
  const thread = threadOf(await clean(said, { allow: ['@acme.com', '+1 (212) 555-0142'] }));
  expect(thread).toEqual(threadOf(made(said)));
  expect(threadOf(await clean(said))?.answers[0]?.exact).toBeUndefined();
});

test('a kind that is dropped keeps the conversation out; without entities names stay', async () => {
  const said: RowMessage[] = [{ role: 'user', content: 'My name is Karen Jones, key E123456, 880101-1234567.' }];
  expect(await clean(said, { policy: { 'kr-rrn': 'drop' } })).toEqual({ kind: 'refused', reason: 'holds kr-rrn' });
  const own = { entities: 'off', recognizers: [{ kind: 'employee', pattern: 'E\\d{6}' }] };
  expect(threadOf(await clean(said, own))?.messages[0]?.content).toBe(
    'My name is Karen Jones, key [EMPLOYEE_1], [KR_RRN].',
  );
});

test('who is named by what they say is masked in the instructions too, and has one number in all threads of the conversation', async () => {
  const one = made([
    { role: 'system', content: 'You are Acme’s. Caller: Karen Jones.' },
    { role: 'user', content: 'My name is Karen Jones.' },
    { role: 'assistant', content: 'Hello.' },
  ]);
  const other = made([
    { role: 'user', content: 'My name is Robert Miller, a friend of Karen Jones.' },
    { role: 'assistant', content: 'Hello.' },
  ]);
  const plain = made([
    { role: 'user', content: 'Where is it?' },
    { role: 'assistant', content: 'Here.' },
  ]);
  const rows = [one, other, plain].flatMap((each) => (each.kind === 'row' ? each.row : []));
  const row: Made = { kind: 'row', row: { ...rows[0]!, threads: rows.flatMap(({ threads }) => threads) } };
  const cleaned = await anonymiseRow(row, await openAnonymiser(piiSettings.parse({})));
  const threads = cleaned.kind === 'row' ? cleaned.row.threads : [];
  expect(threads.map(({ messages }) => messages.map(({ content }) => content))).toEqual([
    ['You are Acme’s. Caller: [PERSON_1].', 'My name is [PERSON_1].', 'Hello.'],
    ['My name is [PERSON_2], a friend of [PERSON_1].', 'Hello.'],
    ['Where is it?', 'Here.'],
  ]);
  expect(threads.map(({ answers }) => answers[0]?.exact)).toEqual([undefined, undefined, exact]);
});
