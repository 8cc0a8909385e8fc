/**
 * Nothing on the way of a turn may take longer than in proportion to its length, whatever the text. Eight times the text
 * may take eight times as long; where a step back or a second look creeps in it takes up to sixty-four. Processor time is
 * compared with itself, so the machine does not matter.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { storableJson } from '../../store/storable.ts';
import { assemble } from '../assemble.ts';
import { adversarial, filled } from '../fixtures/adversarial.ts';
import { bytes, exchange } from '../fixtures/exchange.ts';
import { parseSse } from '../sse.ts';
import { createThreader, normalise } from '../thread.ts';
import { isTooIntricate, parseUntrusted } from '../untrusted.ts';
import { isMedia } from './media.ts';
import { redact, TooMuchWork } from './redact.ts';
import { createRules, redactors } from './rules.ts';

const small = 10_000;
/** Short runs say more about the collector of garbage than about the code. */
const leastMs = 2;

function time(work: () => void): number {
  const started = process.cpuUsage();
  try {
    work();
  } catch (error) {
    if (!(error instanceof TooMuchWork)) throw error;
  }
  const { user, system } = process.cpuUsage(started);
  return (user + system) / 1000;
}

const best = (work: () => void): number => Math.min(...[0, 1].map(() => time(work)));

/** How many times longer eight times as much takes. */
function growth(work: (length: number) => () => void): number {
  const few = work(small);
  const many = work(small * 8);
  few();
  return best(many) / Math.max(leastMs, best(few));
}

const generous = 24;
const stream = (text: string) => exchange({ stream: true, responseChunks: [bytes(text)] });

const readers: Readonly<Record<string, (text: string) => () => void>> = {
  ...Object.fromEntries(redactors.map((one) => [one.name, (text: string) => () => void one.find(text)])),
  // Rules of its own each time, so that nothing is remembered from the run before.
  redact: (text) => () => void redact(text, {}, { rules: createRules() }),
  'redact in JSON in a string': (text) => {
    const inside = JSON.stringify({ a: JSON.stringify([text, '\\']) });
    return () => void redact(inside, {}, { rules: createRules() });
  },
  media: (text) => () => void isMedia(`data:image/png;base64,iVBORw0KGgo${text}`),
  'untrusted JSON': (text) => () => void parseUntrusted(text),
  'weighing JSON': (text) => {
    const body = Buffer.concat([Buffer.from(text), Buffer.alloc(600_000)]);
    return () => void isTooIntricate(body);
  },
  'what jsonb holds': (text) => {
    const json = JSON.stringify(`\0${text}`);
    return () => void storableJson(json);
  },
  'server-sent events': (text) => () => void parseSse(text),
  'a streamed answer': (text) => () => void assemble(stream(text)),
  'an answer': (text) => () => void assemble(exchange({ responseChunks: [bytes(text)] })),
  threading: (text) => () =>
    void normalise({ role: 'assistant', content: `<think>${text}`, tool_calls: [{ function: { arguments: text } }] }),
};

describe.each(Object.entries(readers))('%s', (_, read) => {
  test('takes time in proportion, whatever the text', () => {
    const slow: string[] = [];
    for (const [name, piece] of Object.entries(adversarial)) {
      const ratio = growth((length) => read(filled(piece, length)));
      if (ratio > generous) slow.push(`${name}: ${ratio.toFixed(1)} times`);
    }
    expect(slow).toEqual([]);
  });
});

test('what is remembered of texts and names does not grow without end', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const pass = (from: number) => {
    for (let i = from; i < from + 3000; i++) {
      const text = `${i} ${filled('nothing in here ', 8000)}`;
      redact({ messages: [{ content: text, [`name-${i}`]: `bob${i}@example.com ${text}` }] }, {});
    }
    collect();
    return process.memoryUsage().heapUsed;
  };
  const before = pass(0); // the memories are full after this
  expect(pass(3000) - before).toBeLessThan(8 * 1024 * 1024); // 24 MB of text went through
});

describe('what is not one text', () => {
  test.each<[string, (n: number) => () => void]>([
    [
      'keys that are addresses',
      (n) => {
        const object = Object.fromEntries(Array.from({ length: n / 10 }, (_, i) => [`a${i}@example.com`, i]));
        return () => void redact(object, {});
      },
    ],
    [
      'keys that are addresses, in JSON in a string',
      (n) => {
        const text = JSON.stringify(Object.fromEntries(Array.from({ length: n / 20 }, (_, i) => [`a${i}@b.co`, i])));
        return () => void redact(text, {}, { rules: createRules() });
      },
    ],
    [
      'keys that look like addresses renamed before',
      (n) => {
        const names = Array.from({ length: n / 20 }, (_, i) => [`[email] ${i}`, `a${i}@b.co`]).flat();
        const object = Object.fromEntries(names.map((name) => [name, 1]));
        return () => void redact(object, {});
      },
    ],
    [
      'instructions between answers',
      (n) => {
        const pair = [
          { role: 'system', content: 'Be brief. '.repeat(10) },
          { role: 'assistant', content: 'ok' },
        ];
        const messages = Array.from({ length: n / 60 }, () => pair).flat();
        return () => void place(messages, 1);
      },
    ],
    [
      'a long question with many answers',
      (n) => {
        const messages = [{ role: 'user', content: filled('long ', n * 4) }];
        return () => void place(messages, n / 120);
      },
    ],
    [
      'pieces of tool calls',
      (n) => {
        const piece = 'data:{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"a"}}]}}]}\n\n';
        return () => void assemble(stream(filled(piece, n * 4)));
      },
    ],
  ])('%s take time in proportion', (_, work) => {
    expect(growth(work)).toBeLessThan(generous);
  });
});

function place(messages: readonly object[], answers: number): void {
  const choices = Array.from({ length: answers }, (_, index) => ({
    index,
    message: { role: 'assistant', content: `answer ${index}` },
    finishReason: 'stop',
  }));
  const turn = { explicit: null, agent: 'a', user: null, messages, choices, complete: true };
  createThreader({ secret: 's' }).place(turn, 0, () => 'new');
}
