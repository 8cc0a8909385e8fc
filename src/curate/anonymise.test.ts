import { expect, test } from 'vitest';
import { piiSettings } from '../collect/redact/settings.ts';
import { anonymiseRow, openAnonymiser } from './anonymise.ts';
import { nameKey } from './looks.ts';
import type { Made, RowMessage, RowTool } from './row.ts';

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
/** `own`: the names that stand in most people's instructions. */
const open = (given: object = {}, own: readonly string[] = []) =>
  openAnonymiser(piiSettings.parse(given), async () => new Set(own.map(nameKey)));
const clean = async (messages: RowMessage[], given: object = {}, own: readonly string[] = []) =>
  anonymiseRow(made(messages), await open(given, own));
const threadOf = (row: Made) => (row.kind === 'row' ? row.row.threads[0]! : null);

test('names in what was said are masked, with the same number in arguments and answers; instructions keep the agent’s own', async () => {
  const said: RowMessage[] = [
    { role: 'system', content: 'You work for Sarah Miller.' },
    { role: 'user', content: 'My name is Karen Jones, mail [EMAIL_1].' },
    {
      ...{ role: 'assistant', content: null },
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'find', arguments: '{"who":"Karen Jones"}' } }],
    },
    { role: 'tool', tool_call_id: 'c', content: '{"note":"Karen Jones, karen@example.com"}' },
    { role: 'assistant', content: 'Hello Karen Jones.' },
  ];
  const thread = threadOf(await clean(said, {}, ['Sarah Miller']));
  expect(thread?.messages.map(({ content }) => content)).toEqual([
    'You work for Sarah Miller.',
    'My name is [PERSON_1], mail [EMAIL_1].',
    null,
    '{"note":"[PERSON_1], [EMAIL_2]"}', // whose the first was nobody knows any more
    'Hello [PERSON_1].',
  ]);
  expect(thread?.messages[2]).toMatchObject({ tool_calls: [{ function: { arguments: '{"who":"[PERSON_1]"}' } }] });
  expect(thread?.answers[0]?.exact).toBeUndefined();
  // 0: whatever stands in instructions is the agent's own.
  expect(threadOf(await clean(said, { ownFrom: 0 }))?.messages).toEqual(thread?.messages);
});

test('a name in the instructions that is not the agent’s own is masked there and wherever it is said; alone it costs the exact tokens', async () => {
  const told = (name: string): RowMessage[] => [
    { role: 'system', content: `You work for Sarah Miller.\n\nThe caller is ${name}, 12 Oak Street.` },
    { role: 'user', content: 'where is it' },
    { role: 'assistant', content: 'It was sent.' },
  ];
  const thread = threadOf(await clean(told('Karen Jones'), {}, ['sarah miller']));
  expect(thread?.messages[0]?.content).toBe('You work for Sarah Miller.\n\nThe caller is [PERSON_1], [ADDRESS_1].');
  expect(thread?.answers[0]?.exact).toBeUndefined();
  const plain = threadOf(await clean(told('Karen Jones'), {}, ['Sarah Miller', 'Karen Jones', '12 Oak Street']));
  expect(plain).toEqual(threadOf(made(told('Karen Jones'))));
  const heard: RowMessage[] = [...told('Karen Jones'), { role: 'user', content: 'for karen jones, or Karen Jones?' }];
  expect(threadOf(await clean(heard, {}, ['Sarah Miller']))?.messages.at(-1)?.content).toContain('or [PERSON_1]?');
  expect(await clean(told('Karen Jones'), { policy: { person: 'drop' } }, ['Sarah Miller'])).toEqual({
    kind: 'refused',
    reason: 'holds person',
  });
});

test('tools are told as well: what is somebody’s in them is masked, and their names stay', async () => {
  const tool: RowTool = {
    type: 'function',
    function: {
      name: 'Karen_Jones',
      description: 'Pays to Karen Jones, for Sarah Miller.',
      parameters: { type: 'object', properties: { to: { enum: ['Karen Jones'] } } },
    },
  };
  const row = made([
    { role: 'user', content: 'pay' },
    { role: 'assistant', content: 'Paid.' },
  ]);
  const [thread] = row.kind === 'row' ? row.row.threads : [];
  const given: Made = {
    ...row,
    row: { ...(row as { row: object }).row, threads: [{ ...thread!, tools: [tool] }] },
  } as Made;
  const cleaned = threadOf(await anonymiseRow(given, await open({}, ['Sarah Miller'])));
  expect(cleaned?.tools).toEqual([
    {
      type: 'function',
      function: {
        name: 'Karen_Jones',
        description: 'Pays to [PERSON_1], for Sarah Miller.',
        parameters: { type: 'object', properties: { to: { enum: ['[PERSON_1]'] } } },
      },
    },
  ]);
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
  const cleaned = await anonymiseRow(row, await open({}, ['Caller']));
  const threads = cleaned.kind === 'row' ? cleaned.row.threads : [];
  expect(threads.map(({ messages }) => messages.map(({ content }) => content))).toEqual([
    ['You are Acme’s. Caller: [PERSON_1].', 'My name is [PERSON_1].', 'Hello.'],
    ['My name is [PERSON_2], a friend of [PERSON_1].', 'Hello.'],
    ['Where is it?', 'Here.'],
  ]);
  expect(threads.map(({ answers }) => answers[0]?.exact)).toEqual([undefined, undefined, exact]);
});
