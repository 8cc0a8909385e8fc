import { describe, expect, test } from 'vitest';
import { encodeLine } from '../store/line.ts';
import { bounded, writtenBytes } from './bound.ts';
import { bytes, chat, exchange } from './fixtures/exchange.ts';
import { makeTurn } from './make-turn.ts';
import { createThreader } from './thread.ts';
import { isTooIntricate, parseUntrusted } from './untrusted.ts';

const made = (fields: Parameters<typeof exchange>[0]) =>
  makeTurn(exchange(fields), { threader: createThreader({ secret: 's' }), secret: 's', now: 0, newId: () => 'new' });
const requestOf = (metadata: string) => bytes(`{"model":"m","messages":[],"metadata":${metadata}}`);
const list = (item: string, length: number) => `[${`${item},`.repeat(Math.floor(length / (item.length + 1)))}${item}]`;

describe('the size of a document as the database writes it', () => {
  test.each([
    [1e308, 309],
    [-1e300, 302],
    [1e-300, 302],
    [5e-324, 326],
    [1.2345e21, 22],
    [0.1, 3],
    [12, 2],
    [0, 1],
  ])('%d takes at least %d bytes', (number, least) => {
    expect(writtenBytes(number)).toBeGreaterThanOrEqual(least);
    expect(writtenBytes(number)).toBeLessThan(least + 40);
  });

  test('text counts with its escapes, names count too', () => {
    expect(writtenBytes('"\n')).toBe(6);
    expect(writtenBytes({ Grüße: ['a'] })).toBeGreaterThanOrEqual('{"Grüße": ["a"]}'.length + 2);
  });

  test('the largest fields are replaced until the rest fits', () => {
    const { value, replaced } = bounded({ a: 'x'.repeat(100), b: [1e308, 1e308], c: 1 }, 200);
    expect(replaced).toBe(1);
    expect(value).toEqual({
      a: 'x'.repeat(100),
      b: expect.stringMatching(/^\[too large to store: \d+ bytes\]$/),
      c: 1,
    });
  });
});

describe('a turn', () => {
  test('with a number bomb keeps everything but the bomb, and that is counted', () => {
    const { turn, unfit, contentDropped } = made({ requestBody: requestOf(list('1e308', 15_000_000)) });
    expect([unfit, contentDropped]).toEqual([1, false]);
    expect(turn.request).toMatchObject({ model: 'm', messages: [], metadata: expect.stringMatching(/^\[too large/) });
    expect(turn.choices[0]?.message.content).toBe('Hi, how can I help?');
  });

  test('whose answer is a bomb keeps its text', () => {
    const answer = `{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi","x":${list('1e308', 9_000_000)}}}]}`;
    const { turn, unfit } = made({ responseChunks: [bytes(answer)] });
    expect(unfit).toBe(1);
    expect(turn.choices[0]?.message).toMatchObject({ content: 'Hi', x: expect.stringMatching(/^\[too large/) });
  });

  test('of millions of values or of names is kept without its content, unparsed', () => {
    const names = `{${Array.from({ length: 60_000 }, (_, i) => `"name-${i}":1`).join(',')}}`;
    for (const metadata of [list('[]', 8_000_000), names]) {
      const { turn, contentDropped } = made({ requestBody: requestOf(metadata), httpStatus: 200 });
      expect(contentDropped).toBe(true);
      expect(turn).toMatchObject({
        status: 'ok',
        request: {},
        choices: [],
        error: expect.stringMatching(/too many values/),
      });
    }
  });

  test('that would take too long to redact is kept without its content', () => {
    const text = 'bob@example.com '.repeat(900_000);
    const { turn, contentDropped } = made({ requestBody: requestOf(JSON.stringify(text)) });
    expect(contentDropped).toBe(true);
    expect(encodeLine({ kind: 'turn', turn })).not.toContain('bob');
    expect(turn.error).toMatch(/TooMuchWork/);
  });

  test('as large as bodies may be keeps its content when it is ordinary', () => {
    const text = 'Where is my parcel? I have been waiting: no news. '.repeat(300_000);
    const tool = JSON.stringify({
      rows: Array.from({ length: 20_000 }, (_, i) => ({ id: i, note: 'a "quoted" note' })),
    });
    const request = chat(
      [
        { role: 'user', content: text },
        { role: 'tool', tool_call_id: 'c', content: tool },
      ],
      'Soon.',
    );
    const { turn, contentDropped, unfit } = made(request);
    expect([contentDropped, unfit]).toEqual([false, 0]);
    expect(turn.request.messages).toHaveLength(2);
  });
});

test('ordinary JSON is not intricate, and intricate JSON is not parsed', () => {
  const ordinary = JSON.stringify(
    Array.from({ length: 40_000 }, (_, i) => ({ id: i, name: `row ${i}`, tags: ['a', 'b'] })),
  );
  expect(isTooIntricate(Buffer.from(ordinary))).toBe(false);
  expect(parseUntrusted(ordinary)).toHaveLength(40_000);
  const names = JSON.stringify(Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`name-${i}`, 1])));
  expect(isTooIntricate(Buffer.from(names))).toBe(true);
  expect(parseUntrusted(names)).toBeUndefined();
});
