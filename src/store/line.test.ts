import { expect, test } from 'vitest';
import { createNames } from './content.ts';
import { attachment, entry, turn } from './fixtures.ts';
import { encodeLine, type Line, lineOf, readLine } from './line.ts';
import { storableJson } from './storable.ts';

const long = 'word '.repeat(200);
const bodies = ({ messages }: Line) => messages.map(({ body }) => JSON.parse(`${body}`));

test('a line gives back its facts, its entry and its messages without parsing them', () => {
  const said = [
    { role: 'system', content: long },
    { role: 'user', content: 'Grüße 😀' },
  ];
  const recorded = turn({ agent: 'desk', startedAt: 1_763_200_000_000, request: { model: 'small', messages: said } });
  const line = lineOf({ kind: 'turn', turn: recorded });
  expect(line).toMatchObject({ kind: 'turn', agent: 'desk', at: 1_763_200_000_000 });
  const { request: _, choices: __, ...columns } = recorded;
  expect(JSON.parse(`${line.json}`)).toMatchObject({ ...columns, taskType: null, personal: false });
  expect(JSON.parse(`${line.json}`).frame.request).toEqual([
    ['model', 'is', 'small'],
    ['messages', 'list', 2],
  ]);
  expect(bodies(line)).toEqual(said);
});

test('a line is JSON as a whole, so that people can read a journal', () => {
  const { request, choices, ...columns } = turn({ agent: 'desk', startedAt: 5, request: { text: `Grüße 😀 ${long}` } });
  const told = encodeLine({ kind: 'turn', turn: { request, choices, ...columns } });
  expect(JSON.parse(told)).toMatchObject({
    kind: 'turn',
    agent: 'desk',
    at: 5,
    entry: columns,
    bodies: [request.text],
  });
  const attached = attachment({ agent: 'desk', key: 'order:1', at: 5 });
  const line = encodeLine({ kind: 'attachment', attachment: attached });
  expect(JSON.parse(line)).toEqual({ kind: 'attachment', agent: 'desk', at: 5, entry: attached });
});

test('messages that are known are named and not carried, and pieces of long lists come with them', () => {
  const said = Array.from({ length: 17 }, (_, i) => ({ role: 'user', content: `${i} ${long}` }));
  const first = lineOf(entry.turn({ request: { messages: said } }));
  expect(first.messages.map(({ isPiece }) => isPiece)).toEqual([...Array(16).fill(false), true, false]);
  const known = new Set(first.messages.map(({ hash }) => hash));
  const naming = { names: createNames(''), isKnown: (hash: string) => known.has(hash) };
  const next = lineOf(
    entry.turn({ request: { messages: [...said, { role: 'user', content: `new ${long}` }] } }),
    naming,
  );
  expect(bodies(next)).toEqual([{ role: 'user', content: `new ${long}` }]);
  expect(JSON.parse(`${next.json}`).parts).toHaveLength(3);
});

test('a turn that an earlier Pawl journalled with its whole request is read as one of today', () => {
  const { request, choices, ...columns } = turn({ request: { model: 'small', text: `Grüße ${long}` } });
  const [asked, told] = [JSON.stringify(request), JSON.stringify(choices)];
  const facts = `{"kind":"turn","agent":"desk","at":${columns.startedAt},"bytes":[${Buffer.byteLength(asked)},${Buffer.byteLength(told)}]`;
  const old = `${facts},"entry":${JSON.stringify(columns)},"request":${asked},"choices":${told}}`;
  expect(readLine(Buffer.from(old))).toEqual(lineOf({ kind: 'turn', turn: { ...columns, request, choices } }));
});

test.each(['"', ',"entry":{}', '\\",\\"entry\\":', '}', 'Grüße 😀'])('an agent may be called %s', (agent) => {
  const line = lineOf(entry.turn({ agent, request: { agent, long }, choices: [] }));
  const { agent: told, frame } = JSON.parse(`${line.json}`);
  expect([line.agent, told, frame.request[0], frame.choices]).toEqual([agent, agent, ['agent', 'is', agent], []]);
  expect(bodies(line)).toEqual([long]);
});

test('token arrays stand beside the choices, with the counts that say whose they are', () => {
  const message = { role: 'assistant', content: 'a' };
  const line = lineOf(
    entry.turn({
      choices: [
        { index: 0, message, finishReason: 'stop', tokenIds: [1, 2], logprobs: [-0.5, -1] },
        { index: 1, message, finishReason: 'stop', tokenIds: [3] },
      ],
    }),
  );
  expect(JSON.parse(`${line.json}`).frame.choices).toEqual([
    [0, 'stop', 'is', message],
    [1, 'stop', 'is', message],
  ]);
  expect(JSON.parse(`${line.json}`)).toMatchObject({
    tokenIds: [1, 2, 3],
    logprobs: [-0.5, -1],
    tokenCounts: [2, 2, 1, -1],
  });
});

test('NUL and half surrogate pairs become U+FFFD, an escaped backslash stays', () => {
  const content = 'a\u0000b \ud83d c \\u0000 😀 \udc00';
  expect(JSON.parse(storableJson(JSON.stringify(content)))).toBe('a\ufffdb \ufffd c \\u0000 😀 \ufffd');
});

test.each(['', '{}', '{"kind":"turn"}', 'null', '{"kind":"turn","agent":"a","at":1,"entry":{'])(
  '%j is no line',
  (text) => {
    expect(() => readLine(Buffer.from(text))).toThrow();
  },
);
