import { expect, test } from 'vitest';
import { parseUntrusted } from '../untrusted.ts';
import { createKnownMessages } from './known-messages.ts';
import { openRedaction, redact } from './redact.ts';
import type { Counts } from './redactor.ts';

const request = () => ({
  model: 'm',
  tools: [{ type: 'function', function: { name: 'mail', description: 'Mail to support@example.com' } }],
  messages: [
    { role: 'system', content: 'Be kind to everybody.' },
    { role: 'user', content: 'I am bob@example.com, card 4111 1111 1111 1111.' },
  ],
  password: [{ is: 'hunter2zelda' }],
  user: 'u',
});

test('a request that comes again becomes what it became at first, counts included, from the same messages', () => {
  const known = createKnownMessages();
  const expected: Counts = {};
  const once = redact(request(), expected);
  let seen: unknown;
  for (let i = 0; i < 3; i++) {
    const redaction = openRedaction();
    const redacted = known.redactRequest(request(), redaction);
    expect(JSON.stringify(redacted)).toBe(JSON.stringify(once));
    expect(redaction.counts).toEqual(expected);
    const messages = redacted.messages as unknown[];
    if (i > 0) expect(messages[1]).toBe(seen);
    seen = messages[1];
  }
});

test('a message that was changed is read again where its values have other numbers', () => {
  const known = createKnownMessages();
  const bob = { messages: [{ role: 'user', content: 'I am bob@example.com.' }] };
  const both = { messages: [{ role: 'user', content: 'Ask amy@example.com.' }, ...bob.messages] };
  expect(known.redactRequest(bob, openRedaction())).toEqual({
    messages: [{ role: 'user', content: 'I am [EMAIL_1].' }],
  });
  expect(known.redactRequest(both, openRedaction()).messages).toEqual([
    { role: 'user', content: 'Ask [EMAIL_1].' },
    { role: 'user', content: 'I am [EMAIL_2].' },
  ]);
});

test('what was redacted before costs no work, and new work is limited for the whole turn', () => {
  const known = createKnownMessages();
  const text = {
    messages: Array.from({ length: 10 }, (_, i) => ({ role: 'user', content: `${i} ${'word '.repeat(100)}` })),
  };
  const work = { left: 6000 };
  known.redactRequest(text, openRedaction({ work }));
  expect(work.left).toBeLessThan(1000);
  known.redactRequest(text, openRedaction({ work }));
  const other = { messages: [{ role: 'user', content: 'other words '.repeat(100) }] };
  expect(() => known.redactRequest(other, openRedaction({ work }))).toThrow(/more work/);
});

test('lists of anything, and no lists, are redacted too', () => {
  const known = createKnownMessages();
  const odd = { messages: ['mail bob@example.com', null, 7, ['bob@example.com']], input: 'bob@example.com', tools: {} };
  const redaction = openRedaction();
  expect(known.redactRequest(odd, redaction)).toEqual({
    messages: ['mail [EMAIL_1]', null, 7, ['[EMAIL_1]']],
    input: '[EMAIL_1]',
    tools: {},
  });
  expect(redaction.counts).toEqual({ email: 3 });
});

test('a message that came before with nothing personal in it is not parsed again: it is the same object, also redacted', () => {
  const known = createKnownMessages();
  const text = JSON.stringify(request());
  const once = known.parse(text) as ReturnType<typeof request>;
  expect(once).toEqual(request());
  const redacted = known.redactRequest(once, openRedaction());
  const again = known.parse(text) as ReturnType<typeof request>;
  expect(again).toEqual(request());
  expect(again.messages[0]).toBe(once.messages[0]);
  expect(again.messages[1]).not.toBe(once.messages[1]); // what is personal is not kept
  const twice = known.redactRequest(again, openRedaction());
  expect(twice).toEqual(redacted);
  expect((twice.messages as unknown[])[0]).toBe(once.messages[0]);
  expect((twice.messages as unknown[])[1]).toBe((redacted.messages as unknown[])[1]);
});

test('long messages that begin and end alike are told apart', () => {
  const known = createKnownMessages();
  const said = (word: string) => ({
    messages: [{ role: 'user', content: `${'a '.repeat(300)}${word}${' z'.repeat(200)}` }],
  });
  for (const word of ['left', 'lost', 'left']) {
    const read = known.parse(JSON.stringify(said(word))) as ReturnType<typeof said>;
    expect(known.redactRequest(read, openRedaction())).toEqual(said(word));
  }
});

test('what is no JSON, or has keys that reach for prototypes, is read as by itself', () => {
  const known = createKnownMessages();
  expect(known.parse('{"messages":[{"a":1},]}')).toBeUndefined();
  expect(known.parse('{"messages":[{"__proto__":{"a":1},"b":2}]}')).toEqual({ messages: [{ b: 2 }] });
  const deep = `{"messages":[{"a":${'['.repeat(200)}${']'.repeat(200)}}]}`;
  expect(JSON.stringify(known.parse(deep))).toBe(JSON.stringify(parseUntrusted(deep)));
});
