import { expect, test } from 'vitest';
import { attachment, entry, turn } from './fixtures.ts';
import { encodeLine, lineOf, readLine, storableJson } from './line.ts';

test('a line gives back its facts and its entry without parsing the entry', () => {
  const recorded = turn({ agent: 'desk', startedAt: 1_763_200_000_000 });
  const line = lineOf({ kind: 'turn', turn: recorded });
  expect(line).toMatchObject({ kind: 'turn', agent: 'desk', at: 1_763_200_000_000 });
  const { request, choices, ...columns } = recorded;
  expect(JSON.parse(`${line.json}`)).toEqual(columns);
  expect(JSON.parse(`${line.request}`)).toEqual(request);
  expect(JSON.parse(`${line.choices}`)).toEqual(choices);
});

test('a line is JSON as a whole, so that people can read a journal', () => {
  const { request, choices, ...columns } = turn({ agent: 'desk', startedAt: 5, request: { text: 'Grüße 😀' } });
  const told = encodeLine({ kind: 'turn', turn: { request, choices, ...columns } });
  expect(JSON.parse(told)).toMatchObject({ kind: 'turn', agent: 'desk', at: 5, entry: columns, request, choices });
  const attached = attachment({ agent: 'desk', key: 'order:1', at: 5 });
  const line = encodeLine({ kind: 'attachment', attachment: attached });
  expect(JSON.parse(line)).toEqual({ kind: 'attachment', agent: 'desk', at: 5, entry: attached });
});

test.each(['"', ',"entry":{}', '\\",\\"entry\\":', '}', 'Grüße 😀'])('an agent may be called %s', (agent) => {
  const line = lineOf(entry.turn({ agent, request: { agent }, choices: [] }));
  expect([line.agent, JSON.parse(`${line.json}`).agent, JSON.parse(`${line.request}`)]).toEqual([
    agent,
    agent,
    { agent },
  ]);
  expect(`${line.choices}`).toBe('[]');
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
  expect(JSON.parse(`${line.choices}`)).toEqual([
    { index: 0, message, finishReason: 'stop' },
    { index: 1, message, finishReason: 'stop' },
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
