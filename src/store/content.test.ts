import { describe, expect, test } from 'vitest';
import type { Turn } from '../collect/turn.ts';
import {
  createNames,
  depths,
  type Frame,
  joinContent,
  MissingPart,
  type Parts,
  splitContent,
  wanted,
} from './content.ts';

const names = createNames('a secret');
const long = (text: string) => `${text} ${'word '.repeat(60)}`;
const messages = (n: number) =>
  Array.from({ length: n }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: long(`Message ${i}.`) }));
const choice = { index: 0, message: { role: 'assistant', content: 'Fine.' }, finishReason: 'stop' };

/** All parts that the splits so far had, as the database holds them. */
const library = () => {
  const bodies = new Map<string, string>();
  const pieces = new Map<string, readonly string[]>();
  const need = <T>(found: T | undefined): T => {
    if (found === undefined) throw new MissingPart('gone');
    return found;
  };
  const parts: Parts = { value: (hash) => JSON.parse(need(bodies.get(hash))), piece: (hash) => need(pieces.get(hash)) };
  const keep = (request: Turn['request'], choices: Turn['choices'] = [choice]) => {
    const split = splitContent({ request, choices }, names);
    const before = bodies.size + pieces.size;
    for (const { hash, body, of } of split.parts)
      if (body === null) pieces.set(hash, of!);
      else bodies.set(hash, body);
    const read = () => joinContent(JSON.parse(split.frame) as Frame, split.refs, parts);
    return { ...split, read, added: bodies.size + pieces.size - before };
  };
  return { keep, bodies, pieces };
};

describe('content comes back byte for byte', () => {
  const requests: Record<string, Turn['request']> = {
    empty: {},
    short: { model: 'm', messages: [{ role: 'user', content: 'Hi' }] },
    chat: {
      model: 'm',
      temperature: 0.5,
      messages: messages(7),
      tools: [{ type: 'function', function: { name: long('f') } }],
    },
    'names and numbers in another order': {
      z: long('z'),
      10: 1,
      2: long('2'),
      messages: messages(3),
      a: null,
      b: 1e308,
      c: -0,
    },
    'an agent with Anthropic’s form': { system: long('Be kind.'), messages: messages(33), metadata: { user_id: 'u' } },
    'instructions as a list': { system: [{ type: 'text', text: long('Be kind.') }], messages: messages(2) },
    'a list of texts, of lists, of nothing': {
      input: Array(50).fill(long('embed')),
      prompt: [[1, 2, 3]],
      stop: [],
      tools: [],
    },
    'what looks like a frame': { messages: [['messages', 'list', 3]], request: [['x', 'part']], more: long('x') },
    'a list with nulls': { messages: [null, ...messages(3)], parallel: [undefined, 1] },
    'odd keys': { constructor: long('c'), '': long('e'), '"\\\u2028': long('q'), messages: messages(2) },
  };
  test.each(Object.keys(requests))('%s', (name) => {
    const request = requests[name]!;
    const { read } = library().keep(request);
    expect(JSON.stringify(read())).toBe(JSON.stringify({ request, choices: [choice] }));
  });

  test.each([1, 15, 16, 17, 31, 32, 255, 256, 257, 300, 4097])('a conversation of %i messages', (n) => {
    const request = { messages: messages(n) };
    const { read, refs, bytes } = library().keep(request);
    expect(JSON.stringify(read().request)).toBe(JSON.stringify(request));
    expect(refs.length).toBeLessThanOrEqual(15 * Math.ceil(Math.log(n + 1) / Math.log(16)));
    const size = Buffer.byteLength(JSON.stringify({ request, choices: [choice] }));
    expect(Math.abs(bytes - size)).toBeLessThan(100);
  });

  test('answers of any number and length', () => {
    const choices = [
      choice,
      { ...choice, index: 1, message: { content: long(long('b')), z: 1, a: 2 }, finishReason: null },
    ];
    const { read, parts } = library().keep({ model: 'm' }, choices);
    expect(JSON.stringify(read().choices)).toBe(JSON.stringify(choices));
    expect(parts).toHaveLength(1);
  });
});

describe('what is new is stored, and nothing else', () => {
  test('a conversation that goes on adds its new messages and a few pieces', () => {
    const { keep } = library();
    const added = Array.from(
      { length: 120 },
      (_, i) => keep({ messages: messages(1 + 2 * i), tools: messages(3) }).added,
    );
    expect(added[0]).toBe(3); // the first message is also the first tool here
    expect(Math.max(...added.slice(1))).toBeLessThanOrEqual(2 + 2);
  });

  test('an answer that comes back as a message is there already', () => {
    const { keep } = library();
    const answer = { role: 'assistant', content: long(long('Yes.')) };
    keep({ messages: messages(5) }, [{ index: 0, message: answer, finishReason: 'stop' }]);
    expect(keep({ messages: [...messages(5), answer] }).added).toBe(0);
  });

  test('a fork, an edited message, a summary and instructions that change with every call store what differs', () => {
    const { keep } = library();
    const said = messages(100);
    keep({ messages: said });
    expect(
      keep({ messages: [...said.slice(0, 50), { role: 'user', content: long('Another way.') }] }).added,
    ).toBeLessThan(4);
    expect(keep({ messages: said.with(20, { role: 'user', content: long('Edited.') }) }).added).toBe(2); // and its piece of 16
    expect(keep({ messages: [{ role: 'user', content: long('So far …') }, ...said.slice(90)] }).added).toBe(1);
    for (let minute = 0; minute < 5; minute++)
      expect(keep({ system: long(`It is 12:0${minute}.`), messages: said }).added).toBe(1);
  });

  test('many texts, or a list that no conversation has, are one part', () => {
    expect(library().keep({ input: Array.from({ length: 2000 }, (_, i) => `text ${i}`) }).added).toBe(1);
    expect(library().keep({ messages: Array.from({ length: 20_000 }, (_, i) => ({ i })) }).added).toBe(1);
  });
});

test('what was named before is named the same, wherever the list was changed', () => {
  const said = messages(600);
  const edited = messages(600).with(3, { role: 'user', content: long('Edited.') });
  for (const list of [said.slice(0, 40), said, said.slice(1), said.with(3, edited[3]!), said.slice(0, 300), said]) {
    const fresh = createNames('a secret');
    const [again, anew] = [names, fresh].map((by) => splitContent({ request: { list }, choices: [] }, by));
    expect(again).toEqual(anew);
  }
});

test('what is in a piece that is known is not asked for', () => {
  const said = messages(300);
  const { parts } = splitContent({ request: { said }, choices: [] }, names);
  const known = new Set(parts.map(({ hash }) => hash));
  const asked: string[] = [];
  const isKnown = (hash: string) => asked.push(hash) > 0 && known.has(hash);
  const next = splitContent({ request: { said: [...said, ...messages(2)] }, choices: [] }, names, isKnown);
  expect(next.parts).toEqual([]);
  expect(asked).toHaveLength(1 + 2 + 14); // 302 messages: a piece of 256, two of 16, and the rest
  expect(next.refs).toHaveLength(1 + 2 + 14);
});

test('what is needed is told by how deep it is', () => {
  expect(depths(41)).toEqual([1, 1, ...Array(9).fill(0)]);
  expect(depths(256)).toEqual([2]);
  const { frame, refs } = library().keep({ system: long('Be kind.'), messages: messages(41) });
  expect(wanted(JSON.parse(frame) as Frame, refs).map((names) => names.length)).toEqual([10, 2]);
});

test('a part that is nowhere is an error of its own', () => {
  const { keep, bodies } = library();
  const { read } = keep({ messages: messages(20) });
  bodies.delete([...bodies.keys()][3]!);
  expect(read).toThrow(MissingPart);
});

test('names depend on the secret, and a piece is never named like a message', () => {
  expect(createNames('one').nameOf('"Hi"')).not.toBe(createNames('two').nameOf('"Hi"'));
  expect(names.nameOf('"Hi"')).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
});

test('what no database holds becomes U+FFFD, in keys, messages and answers', () => {
  const odd = 'a\u0000b \ud83d c \\u0000 😀';
  const { read } = library().keep({ [odd]: long(odd), messages: [{ role: 'user', content: long(odd) }] });
  expect(JSON.stringify(read())).toContain('a\ufffdb \ufffd c \\\\u0000 😀');
  expect(JSON.stringify(read())).not.toMatch(/\\ud83d|[^\\]\\u0000/);
});
