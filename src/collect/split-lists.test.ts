import { expect, test } from 'vitest';
import { splitLists } from './split-lists.ts';

const names = ['messages', 'tools'];

/** What a reader makes of the pieces. */
function joined(text: string): unknown {
  const split = splitLists(text, names);
  if (split === null) return null;
  const request = JSON.parse(split.rest) as Record<string, unknown[]>;
  for (const { name, items } of split.lists)
    request[name]!.push(...items.map((place) => JSON.parse(text.slice(...place)) as unknown));
  return request;
}

test('the pieces are the texts of the objects, and the rest is the request without them', () => {
  const text = '{"model":"m","messages":[{"role":"user"}, {"content":"a, b"}],"n":1}';
  const { rest, lists } = splitLists(text, names)!;
  expect(rest).toBe('{"model":"m","messages":[],"n":1}');
  expect(lists.map(({ name, items }) => [name, ...items.map((place) => text.slice(...place))])).toEqual([
    ['messages', '{"role":"user"}', '{"content":"a, b"}'],
  ]);
});

test('an object that is expected is passed over, and those that are not are told', () => {
  const text = '{"messages":[{"a":1}, {"b":"]}"},{"c":3}]}';
  const met: string[] = [];
  const expected = {
    endOf: (from: number) => (text.startsWith('{"b":"]}"}', from) ? from + 10 : -1),
    met: (from: number, to: number) => met.push(text.slice(from, to)),
  };
  expect(splitLists(text, names, expected)).toEqual(splitLists(text, names));
  expect(met).toEqual(['{"a":1}', '{"c":3}']);
});

test('put together again they are what the whole text says', () => {
  const values: unknown[] = [
    { messages: [{ a: '}],"messages":[{' }, { b: ['\\', '\\"', '"', { c: [[]] }] }], tools: [{}], stream: true },
    { x: { messages: [{ inner: 1 }] }, messages: [{ role: 'user' }], y: 'messages' },
    { messages: [], tools: [], n: -1.5e3 },
    { messages: [{ text: 'line\nend\t"quoted" \\\\" \u2028 한국어 😀' }] },
    { messages: ['words', { a: 1 }], tools: [{ a: 1 }, 2], input: [{ a: 1 }] },
    { messages: { role: 'user' }, tools: null },
    {},
  ];
  for (const value of values)
    for (const space of [0, 2, '\t\r\n '.slice(0, 3)]) {
      const text = JSON.stringify(value, null, space);
      const back = joined(text);
      if (JSON.stringify(value) !== '{}') expect(JSON.stringify(back)).toBe(JSON.stringify(value));
    }
});

test('names that are escaped or come twice, and what is no object, are left to the parser', () => {
  expect(splitLists('{"messages":[{}],"messages":[{}]}', names)).toBeNull();
  expect(splitLists('{"messages":["a"],"messages":[{}]}', names)).toBeNull();
  expect(splitLists('{"\\u006dessages":[{}]}', names)).toBeNull();
  expect(splitLists('[{"messages":[{}]}]', names)).toBeNull();
  expect(splitLists('{"messages":[{}]} {}', names)).toBeNull();
  expect(splitLists('', names)).toBeNull();
});

test('what is no JSON is never made into JSON', () => {
  const broken = [
    '{"messages":[{}{}]}',
    '{"messages":[{},]}',
    '{"messages":[,{}]}',
    '{"messages":[{}]',
    '{"messages":[{"a":1]}',
    '{"messages":[{"a":]}]}',
    '{"messages":[{"a"}],"b":1}',
    '{"messages":[{}],}',
    '{"messages":[{}] "b":1}',
    '{"messages" [{}]}',
    '{"messages":[{"a":"b]}',
    '{messages:[{}]}',
  ];
  for (const text of broken) {
    let read: unknown = null;
    try {
      read = joined(text);
    } catch {
      // A piece or the rest is no JSON.
    }
    expect(read, text).toBeNull();
  }
});
