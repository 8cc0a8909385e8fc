/**
 * No value that a caller, an upstream or a clock can send makes the database refuse a turn. Every field is tried with every
 * odd value, through the same steps as in the recorder, on a real database.
 */
import { expect, test } from 'vitest';
import type { Exchange } from '../collect/exchange.ts';
import { bytes, exchange } from '../collect/fixtures/exchange.ts';
import { makeAttachment, makeSignal, makeTurn } from '../collect/make-turn.ts';
import type { JournalEntry } from '../collect/signal.ts';
import { createThreader } from '../collect/thread.ts';
import { uuidv7 } from '../collect/uuid.ts';
import { createNames } from './content.ts';
import { attachment, signal } from './fixtures.ts';
import { makeLine } from './made-line.ts';
import { writeEntries, writeLines } from './record.ts';
import { withStore } from './test-store.ts';
import { readTrajectory } from './trajectories.ts';

/** As they stand in JSON. */
const oddJson = [
  ...['-1e-60', '1e-45', '-1e300', '1e308', '1e400', '-0', '0.5', '-1', '1e15', '9007199254740993', '5e-324'],
  ...['2147483648', '4294967296', '-2147483649', '"Infinity"', '"-Infinity"', '"NaN"', 'null', 'true', '{}', '[]'],
  ...[
    '""',
    '"\\u0000"',
    '"\\ud800"',
    '"😀"',
    `"${'long '.repeat(2000)}"`,
    `"${'ü'.repeat(3000)}"`,
    '[[[]]]',
    '{"":{"":1e308}}',
  ],
];
const oddNumbers = [
  ...[Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -1, 0.5, 1e300, 5e-324, 2 ** 31, 2 ** 53],
  ...[Number.MAX_VALUE, -Number.MAX_VALUE, 8.64e15, 99_999],
];
const oddTexts = ['', '\0', '\ud800', '"', "'; drop table", '😀'.repeat(500), 'ü'.repeat(5000), 'x'.repeat(10_000)];

const answer = (field: string, value: string): string => {
  const parts: Record<string, string> = {
    model: '"m"',
    finish: '"stop"',
    index: '0',
    ids: '[1]',
    logprobs: '{"content":[{"token":"a","logprob":-0.5}]}',
    promptIds: '[1]',
    promptTokens: '1',
    completionTokens: '1',
    reasoningTokens: '1',
    usage: '1',
    content: '"Hi"',
    extra: '1',
    ...{ [field]: value },
  };
  return `{"model":${parts.model},"prompt_token_ids":${parts.promptIds},"choices":[{"index":${parts.index},"message":{"role":"assistant","content":${parts.content},"extra":${parts.extra}},"finish_reason":${parts.finish},"token_ids":${parts.ids},"logprobs":${parts.logprobs}}],"usage":{"prompt_tokens":${parts.promptTokens},"completion_tokens":${parts.completionTokens},"completion_tokens_details":{"reasoning_tokens":${parts.reasoningTokens}},"more":${parts.usage}}}`;
};

const fieldsOfAnswer = [
  ...['model', 'finish', 'index', 'promptTokens', 'completionTokens', 'reasoningTokens', 'usage', 'content', 'extra'],
];

function* exchanges(): Generator<Partial<Exchange>> {
  for (const value of oddJson) {
    for (const field of fieldsOfAnswer) yield { responseChunks: [bytes(answer(field, value))] };
    yield { responseChunks: [bytes(answer('ids', `[1,${value}]`))] };
    yield { responseChunks: [bytes(answer('promptIds', `[${value}]`))] };
    yield { responseChunks: [bytes(answer('logprobs', `{"content":[{"logprob":${value}}]}`))] };
    yield { responseChunks: [bytes(answer('logprobs', `{"token_logprobs":[${value},-1]}`))] };
    yield { stream: true, responseChunks: [bytes(`data: ${answer('extra', value)}\n\ndata: [DONE]\n\n`)] };
    yield { responseChunks: [bytes(value)] };
    yield { requestBody: bytes(`{"model":"m","messages":${value},"metadata":{"a":${value}},"user":${value}}`) };
    yield { requestBody: bytes(value) };
  }
  for (const value of oddNumbers) {
    yield { startedAt: value };
    yield { latencyMs: value };
    yield { firstTokenMs: value };
    yield { httpStatus: value };
    yield { attempts: value };
  }
  for (const value of oddTexts) {
    yield { release: value, assigned: value, requestedModel: value };
    yield { error: value, status: 'error' };
    yield { user: value, keys: [value, value] };
    yield { trajectory: value };
    yield { agent: value.slice(0, 63), upstream: value.slice(0, 200) };
  }
}

test('the database takes every turn, and gives it back', async () => {
  const store = await withStore();
  const threader = createThreader({ secret: 's' });
  let n = 0;
  const entries: (JournalEntry & { readonly kind: 'turn' })[] = [];
  for (const fields of exchanges()) {
    const given = exchange({ id: uuidv7(), trajectory: `odd-${n++}`, ...fields });
    const { turn } = makeTurn(given, { threader, secret: 's', now: 0, newId: uuidv7 });
    entries.push({ kind: 'turn', turn });
  }
  // As the recorder writes them, and again as they come from the journal.
  const naming = { names: createNames(''), isKnown: () => false };
  const lines = entries.map(({ turn }) => {
    const { text, journalled } = makeLine(turn, naming, null);
    return journalled(Buffer.from(text));
  });
  expect(lines.filter((line) => line.turn === undefined)).toEqual([]);
  const made = await writeLines(store, lines);
  expect(made.refused.map(({ line, error }) => [error, `${line.json}`.slice(0, 300)])).toEqual([]);
  expect(made.inserted).toBe(entries.length);
  const { refused, duplicates } = await writeEntries(store, entries);
  expect(refused.map(({ entry, error }) => [error, JSON.stringify(entry).slice(0, 300)])).toEqual([]);
  expect(duplicates).toBe(entries.length);
  for (let i = 0; i < n; i += 7) {
    const found = await readTrajectory(store, `odd-${i}`, { now: new Date(Date.UTC(2099, 0, 1)) });
    if (found !== null) expect(found.turns.length).toBeGreaterThan(0);
  }
});

test('a thousand turns with the largest counts still add up', async () => {
  const store = await withStore();
  const threader = createThreader({ secret: 's' });
  const entries = Array.from({ length: 1100 }, (): JournalEntry => {
    const response = answer('promptTokens', '9007199254740991').replace(
      '"completion_tokens":1',
      '"completion_tokens":999999999999',
    );
    const given = exchange({ id: uuidv7(), trajectory: 'sum', responseChunks: [bytes(response)], latencyMs: 1e300 });
    return { kind: 'turn', turn: makeTurn(given, { threader, secret: 's', now: 0, newId: uuidv7 }).turn };
  });
  expect((await writeEntries(store, entries)).refused).toEqual([]);
});

test('the database takes every signal and attachment, and they can be shown', async () => {
  const store = await withStore();
  const entries: JournalEntry[] = [];
  const target = { kind: 'trajectory', id: 'odd' } as const;
  let n = 0;
  for (const value of [...oddNumbers, 9007199254740991]) {
    for (const fields of [{ value }, { at: value }, { receivedAt: value }])
      entries.push({
        kind: 'signal',
        signal: makeSignal(signal({ id: uuidv7(), identity: `${n++}`, target, ...fields }), 's').signal,
      });
    entries.push({
      kind: 'attachment',
      attachment: makeAttachment(attachment({ trajectory: 'odd', key: `${n++}`, at: value }), 's'),
    });
  }
  for (const text of oddTexts) {
    for (const fields of [
      { name: text },
      { unit: text },
      { user: text },
      { comment: text },
      { correction: text },
      { identity: text },
    ])
      entries.push({
        kind: 'signal',
        signal: makeSignal(signal({ id: uuidv7(), identity: `${n++}`, target, ...fields }), 's').signal,
      });
    entries.push({ kind: 'attachment', attachment: makeAttachment(attachment({ trajectory: text, key: text }), 's') });
  }
  expect((await writeEntries(store, entries)).refused).toEqual([]);
  const turn = makeTurn(exchange({ trajectory: 'odd', agent: 'desk' }), {
    threader: createThreader({ secret: 's' }),
    secret: 's',
    now: 0,
    newId: uuidv7,
  }).turn;
  await writeEntries(store, [{ kind: 'turn', turn }]);
  const found = await readTrajectory(store, 'odd');
  expect(found!.signals.every(({ at, receivedAt }) => !Number.isNaN(at + receivedAt))).toBe(true);
});
