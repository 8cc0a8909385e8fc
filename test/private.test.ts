/**
 * Nothing that redaction covers reaches the disk, whatever position it is in: every kind in every place that a caller or an
 * upstream can write to, streamed and not, through the steps of the recorder into a real database. Looked for in the bytes
 * that the journal would hold and in every row of every table.
 */
import { expect, test } from 'vitest';
import type { Exchange } from '../src/collect/exchange.ts';
import { bytes, exchange } from '../src/collect/fixtures/exchange.ts';
import { makeAttachment, makeSignal, makeTurn } from '../src/collect/make-turn.ts';
import type { JournalEntry, Signal } from '../src/collect/signal.ts';
import { createThreader } from '../src/collect/thread.ts';
import { uuidv7 } from '../src/collect/uuid.ts';
import { attachment, signal } from '../src/store/fixtures.ts';
import { encodeLine, readLine } from '../src/store/line.ts';
import type { Store } from '../src/store/postgres.ts';
import { writeLines } from '../src/store/record.ts';
import { withStore } from '../src/store/test-store.ts';

/** What is written, and the part of it that may be found nowhere. Put together, so that scanners are not alarmed. */
const random = (n: number) => 'q7Zk2'.repeat(Math.ceil(n / 5)).slice(0, n);
const kinds: Readonly<Record<string, { readonly text: string; readonly raw: RegExp }>> = {
  address: { text: 'zelda.q@example.com', raw: /zelda/ },
  'card in one piece': { text: '4111111111111111', raw: /4111.{0,8}1111/s },
  'card with spaces': { text: '4111 1111 1111 1111', raw: /4111.{0,8}1111/s },
  'card with dots': { text: '4111.1111.1111.1111', raw: /4111.{0,8}1111/s },
  'card with tabs': { text: '4111\t1111\t1111\t1111', raw: /4111.{0,8}1111/s },
  'card with two spaces': { text: '4111  1111  1111  1111', raw: /4111.{0,8}1111/s },
  'card on four lines': { text: '4111\n1111\n1111\n1111', raw: /4111.{0,8}1111/s },
  'card with long dashes': { text: '4111–1111—1111―1111', raw: /4111.{0,8}1111/s },
  'card in full width': { text: '４１１１１１１１１１１１１１１１', raw: /４１１１/ },
  'vendor key': { text: `sk-proj-${random(40)}`, raw: new RegExp(random(12)) },
  'client token': { text: `pawl_${random(43)}`, raw: new RegExp(random(12)) },
  'admin token': { text: `pawl_admin_${random(43)}`, raw: new RegExp(random(12)) },
  password: { text: 'password: hunter2zelda', raw: /hunter2zelda/ },
  'api key': { text: 'api_key=zelda0123456789', raw: /zelda0123456789/ },
  'authorization header': { text: 'Authorization: Bearer zelda0123456789', raw: /zelda0123456789/ },
  'URL with a password': { text: 'postgres://app:hunter2zelda@db.internal/x', raw: /hunter2zelda/ },
};

const done = 'data: [DONE]\n\n';
const event = (delta: object, more: object = {}) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, ...more }] })}\n\n`;
const pieces = (text: string) => text.match(/[\s\S]{1,3}/g) ?? [];
const streamed = (...events: string[]): Partial<Exchange> => ({
  stream: true,
  responseChunks: [bytes(events.join('') + done)],
});
const asked = (body: object): Partial<Exchange> => ({ requestBody: bytes(JSON.stringify({ model: 'm', ...body })) });
const answered = (message: object, more: object = {}): Partial<Exchange> => ({
  responseChunks: [
    bytes(JSON.stringify({ model: 'm', choices: [{ index: 0, message, finish_reason: 'stop', ...more }] })),
  ],
});
const escaped = (text: string) => [...text].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');

const places: Readonly<Record<string, (text: string) => Partial<Exchange>>> = {
  'a message': (text) => asked({ messages: [{ role: 'user', content: `It is ${text} I think` }] }),
  'a part of a message': (text) => asked({ messages: [{ role: 'user', content: [{ type: 'text', text }] }] }),
  'a picture’s address': (text) =>
    asked({
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: `data:x;base64,${text}` } }] }],
    }),
  'a picture that is none': (text) =>
    asked({ messages: [{ role: 'user', content: `data:image/png;base64,iVBORw0KGgo ${text}` }] }),
  instructions: (text) => asked({ messages: [{ role: 'system', content: text }] }),
  'a tool’s result': (text) =>
    asked({ messages: [{ role: 'tool', tool_call_id: 'c', content: JSON.stringify({ found: text }) }] }),
  'JSON in JSON in JSON': (text) =>
    asked({
      messages: [{ role: 'tool', tool_call_id: 'c', content: JSON.stringify({ a: JSON.stringify({ b: text }) }) }],
    }),
  'escapes in JSON': (text) =>
    asked({ messages: [{ role: 'tool', tool_call_id: 'c', content: `{"found":"${escaped(text)}"}` }] }),
  'JSON that was cut off': (text) =>
    asked({ messages: [{ role: 'tool', tool_call_id: 'c', content: `{"found": ${JSON.stringify(text)}, "nex` }] }),
  'a name of a field': (text) => asked({ metadata: { [text]: 1 } }),
  'a name of a field in JSON': (text) =>
    asked({ messages: [{ role: 'user', content: JSON.stringify({ [text]: 1 }) }] }),
  'a tool’s description': (text) =>
    asked({ tools: [{ type: 'function', function: { name: 'f', description: text } }] }),
  metadata: (text) => asked({ metadata: { note: text } }),
  'the user’s field': (text) => asked({ user: text, safety_identifier: text }),
  'a field nobody knows': (text) => asked({ prediction: { type: 'content', content: [[text]] } }),
  'a prompt': (text) => ({ endpoint: 'completions', ...asked({ prompt: [text] }) }),
  'a text to embed': (text) => ({ endpoint: 'embeddings', ...asked({ input: text }) }),
  'the model asked for': (text) => ({
    ...asked({ model: text }),
    requestedModel: text,
    release: `local/${text}`,
    assigned: text,
    responseChunks: [],
  }),
  'the model that answered': (text) => ({ responseChunks: [bytes(JSON.stringify({ model: text, choices: [] }))] }),
  'the caller’s ids': (text) => ({ user: text, trajectory: text, keys: [text, `order:${text}`] }),
  'an answer': (text) => answered({ role: 'assistant', content: text }),
  reasoning: (text) => answered({ role: 'assistant', content: '', reasoning_content: text }),
  'a refusal': (text) => answered({ role: 'assistant', content: null, refusal: text }),
  'a transcript': (text) => answered({ role: 'assistant', content: null, audio: { id: 'a', transcript: text } }),
  'a tool call': (text) =>
    answered({
      role: 'assistant',
      tool_calls: [{ id: 'c', function: { name: 'f', arguments: JSON.stringify({ a: text }) } }],
    }),
  'a function call': (text) =>
    answered({ role: 'assistant', function_call: { name: 'f', arguments: JSON.stringify({ a: text }) } }),
  'a name of a tool': (text) =>
    answered({ role: 'assistant', tool_calls: [{ id: 'c', function: { name: text, arguments: '{}' } }] }),
  'the reason for the end': (text) => answered({ role: 'assistant', content: 'Hi' }, { finish_reason: text }),
  usage: (text) => ({ responseChunks: [bytes(JSON.stringify({ choices: [], usage: { note: text, [text]: 1 } }))] }),
  'a streamed answer': (text) => streamed(...pieces(`So ${text} it is`).map((content) => event({ content }))),
  'streamed reasoning': (text) => streamed(...pieces(text).map((reasoning_content) => event({ reasoning_content }))),
  'a streamed refusal': (text) => streamed(...pieces(text).map((refusal) => event({ refusal }))),
  'streamed parts': (text) =>
    streamed(...pieces(text).map((piece) => event({ content: [{ type: 'text', text: piece }] }))),
  'a streamed tool call': (text) =>
    streamed(
      ...pieces(JSON.stringify({ a: text })).map((piece) =>
        event({ tool_calls: [{ index: 0, id: 'c', function: { arguments: piece } }] }),
      ),
    ),
  'the reason for a stream’s end': (text) => streamed(event({ content: 'Hi' }, { finish_reason: text })),
  'a stream’s error': (text) =>
    streamed(`event: error\ndata: ${JSON.stringify({ error: { message: text, code: text } })}\n\n`),
  'an error': (text) => ({ status: 'error', httpStatus: 500, error: `no account ${text} here` }),
  'an error body': (text) => ({
    httpStatus: 400,
    responseChunks: [bytes(JSON.stringify({ error: { message: `bad ${text}` } }))],
  }),
  'an error body of another form': (text) => ({
    httpStatus: 400,
    responseChunks: [bytes(JSON.stringify({ error: { detail: [text] } }))],
  }),
  'an error at the place where it is cut': (text) => ({
    status: 'error',
    error: `${'word '.repeat(797)} at ${text} and more ${'word '.repeat(200)}`,
  }),
  'an error that shrinks': (text) => ({ status: 'error', error: `${'a@example.com '.repeat(400)} ${text}` }),
};

const signals: Readonly<Record<string, (text: string) => Partial<Signal>>> = {
  'a comment': (comment) => ({ comment }),
  'a correction': (correction) => ({ correction }),
  'a unit': (unit) => ({ unit }),
  'a signal’s name': (name) => ({ name }),
  'a voter': (user) => ({ user, identity: JSON.stringify(['feedback', 'desk', 'key', user]) }),
  'a key': (id) => ({ target: { kind: 'key', id }, identity: JSON.stringify(['outcome', id]) }),
};

async function everything(store: Store): Promise<string> {
  const tables = await store.pool.query<{ name: string }>(
    `select format('%I.%I', table_schema, table_name) as name from information_schema.tables where table_schema = 'pawl'`,
  );
  const dumps = [];
  for (const { name } of tables.rows)
    dumps.push(
      (
        await store.pool.query<{ all: string }>(
          `select coalesce(string_agg(t::text, E'\\n'), '') as all from ${name} t`,
        )
      ).rows[0]!.all,
    );
  return dumps.join('\n');
}

test.each(Object.entries(kinds))('%s is stored raw in no place', async (_, { text, raw }) => {
  const store = await withStore();
  const threader = createThreader({ secret: 's' });
  const leaks: string[] = [];
  const put = async (place: string, entry: JournalEntry) => {
    const line = encodeLine(entry);
    if (raw.test(line)) leaks.push(`${place}: ${line.slice(0, 2000)}`);
    const { refused } = await writeLines(store, [readLine(Buffer.from(line))]);
    expect(refused).toEqual([]);
  };
  for (const [place, fields] of Object.entries(places)) {
    const given = exchange({ id: uuidv7(), ...fields(text) });
    const { turn, contentDropped } = makeTurn(given, { threader, secret: 's', now: 0, newId: uuidv7 });
    expect([place, contentDropped]).toEqual([place, false]);
    await put(place, { kind: 'turn', turn });
  }
  for (const [place, fields] of Object.entries(signals))
    await put(place, { kind: 'signal', signal: makeSignal(signal({ identity: place, ...fields(text) }), 's').signal });
  await put('an attached key', {
    kind: 'attachment',
    attachment: makeAttachment(attachment({ key: text, trajectory: text }), 's'),
  });
  expect(leaks).toEqual([]);
  expect(await everything(store)).not.toMatch(raw);
});
