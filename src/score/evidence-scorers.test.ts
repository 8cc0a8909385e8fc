import { describe, expect, test } from 'vitest';
import type { Signal } from '../collect/signal.ts';
import { noon, signal, turn } from '../store/fixtures.ts';
import { converse, type Said, trajectory } from './fixtures.ts';
import { implicit } from './implicit.ts';
import { latency } from './latency.ts';
import { outcome } from './outcome.ts';
import { repeatedShare } from './repeats.ts';
import { scorerConformance } from './scorer-conformance.ts';
import { steps } from './steps.ts';
import { thinking } from './thinking.ts';
import { toolUse } from './tool-use.ts';

const turns = converse('Where is order 7?', [
  { say: [['get_order', '{"id":7}']], results: ['{"status":"sent","carrier":"UPS"}'] },
  { say: 'It was sent.' },
]);
const input = (signals: readonly Signal[] = [], of = turns) => ({ trajectory: trajectory(), turns: of, signals });
const measured = (name: string, value: number) =>
  signal({ kind: 'outcome', name, value, identity: name, user: null, at: noon });

describe('an outcome against a baseline', () => {
  const faster = outcome('ms', { baseline: 'ms_before', better: 'lower', full: 4, after: { outcome: 'correct' } });
  scorerConformance({
    scorer: faster,
    gold: input([measured('ms', 10), measured('ms_before', 40), measured('correct', 1)]),
    poor: input([measured('ms', 39), measured('ms_before', 40), measured('correct', 1)]),
    silent: input([measured('ms', 10)]),
  });
  const worth = (ms: number, before: number, correct: number | null) =>
    faster.score(
      input([
        measured('ms', ms),
        measured('ms_before', before),
        ...(correct === null ? [] : [measured('correct', correct)]),
      ]),
    ).value;

  test('counts how many times better it is: twice of four times is half of the way', () => {
    expect(worth(20, 40, 1)).toBeCloseTo(0.5, 12);
    expect(worth(10, 40, 1)).toBe(1);
    expect(worth(40, 40, 1)).toBe(0);
    expect(worth(80, 40, 1)).toBe(0);
  });

  test('is worth nothing before its gate holds, however fast, and unknown until the gate is known', () => {
    expect(worth(1, 40, 0)).toBe(0);
    expect(worth(1, 40, null)).toBeNull();
    expect(worth(0, 40, 1)).toBeNull();
  });

  test('higher may be better, and the baseline a number', () => {
    const more = outcome('speedup', { baseline: 1, better: 'higher' });
    expect(more.score(input([measured('speedup', 2)])).value).toBe(1);
    expect(more.score(input([measured('speedup', Math.SQRT2)])).value).toBeCloseTo(0.5, 12);
    expect(() => outcome('x', { baseline: 0, better: 'lower' })).toThrow(/above 0/);
    expect(() => outcome('x', { baseline: 1, better: 'lower', full: 1 })).toThrow(/more than 1/);
  });

  test('keeps the version that outcomes without a curve had', () => {
    expect(outcome('resolved').version).toBe('["outcome",1,"resolved",0,1,false]');
    expect(outcome('hours', { worst: 48, best: 0 }).version).toBe('["outcome",1,"hours",48,0,true]');
  });
});

describe('latency', () => {
  const taking = (...ms: number[]) =>
    input(
      [],
      ms.map((latencyMs) => turn({ latencyMs })),
    );
  scorerConformance({ scorer: latency(), gold: taking(500, 10_000), poor: taking(500, 12_000), silent: input([], []) });
  test('falls from 10 to 15 seconds, by the longest answer', () => {
    expect([10_000, 11_000, 12_500, 15_000, 60_000].map((ms) => latency().score(taking(100, ms)).value)).toEqual([
      1, 0.8, 0.5, 0, 0,
    ]);
  });

  test('is unknown where no answer says how long it took, as in what was imported', () => {
    expect(latency().score(taking(0, 0))).toMatchObject({ value: null, reason: 'nobody recorded how long it took' });
    expect(latency().score(taking(0, 12_500)).value).toBe(0.5);
  });
});

describe('implicit', () => {
  const did = (name: string, user: string | null = 'ann', id = turns[1]!.id) =>
    signal({ kind: 'event', name, user, value: null, identity: `${name} ${user} ${id}`, target: { kind: 'turn', id } });
  scorerConformance({
    scorer: implicit(),
    gold: input([did('accepted'), did('copied')]),
    poor: input([did('edited')]),
    silent: input([measured('resolved', 1)]),
  });
  const next = (said: string) =>
    converse('Where is my order number 7?', [{ say: 'It was sent.' }]).concat(
      turn({
        startedAt: noon + 60_000,
        request: {
          messages: [
            { role: 'user', content: 'Where is my order number 7?' },
            { role: 'assistant', content: 'It was sent.' },
            { role: 'user', content: said },
          ],
        },
      }),
    );

  test.each([
    ['Thanks a lot!', 1, 'thanked'],
    ['정말 감사합니다', 1, 'thanked'],
    ["No, that's wrong, it never came.", 0, 'corrected'],
    ['그게 아니라 8번 주문이요', 0, 'corrected'],
    ['So where is my order number 7?', 0, 'asked again'],
    ['And when was order 8 sent?', null, 'the user showed nothing'],
  ])('reads “%s” as %s', (said, value, reason) => {
    expect(implicit().score(input([], next(said)))).toMatchObject({ value, reason });
  });

  test('what the application tells stands before what the words suggest', () => {
    const talk = next('Thanks a lot!');
    expect(implicit().score(input([did('retried', 'ann', talk[0]!.id)], talk)).value).toBe(0);
  });

  test('a thousand events of invented users weigh as much as those of one who was there', () => {
    const mine = turns.map((one) => ({ ...one, user: 'ann' }));
    const storm = Array.from({ length: 1000 }, (_, i) => ({ ...did('abandoned', `nobody ${i}`), key: 'k1' }));
    expect(implicit().score(input([...storm, did('accepted')], mine)).value).toBe(0.5);
  });

  test('takes other worths, within 0–1', () => {
    expect(implicit({ edited: 0.8 }).score(input([did('edited')])).value).toBe(0.8);
    expect(() => implicit({ edited: 2 })).toThrow(/'edited' is worth 2/);
  });
});

describe('thinking', () => {
  const thought = (text: string, tokens: number | null = null) =>
    input(
      [],
      [
        turn({
          reasoningTokens: tokens,
          choices: [
            {
              index: 0,
              message: { role: 'assistant', content: 'Yes.', reasoning_content: text },
              finishReason: 'stop',
            },
          ],
        }),
      ],
    );
  const wait = 'Wait, the order might have been sent on Monday after all, so look at it again. ';
  scorerConformance({
    scorer: thinking({ median: 100 }),
    gold: thought('Order 7 was sent.', 80),
    poor: thought('Order 7 was sent.', 200),
    silent: input(),
    readsAnswers: true,
  });

  test('what it thought without an answer in the end is worth nothing', () => {
    const cut = turn({
      reasoningTokens: 60,
      choices: [
        { index: 0, message: { role: 'assistant', content: '', reasoning_content: 'Hm.' }, finishReason: 'length' },
      ],
    });
    const [answered] = thought('x', 40).turns;
    const { value, reason, turns: per } = thinking({ median: 100 }).score(input([], [answered!, cut]));
    expect(value).toBeCloseTo(0.4, 10);
    expect(reason).toBe('100 tokens of thinking, usually 100; 60% of it without an answer');
    expect([answered!, cut].map(({ id }) => per.get(id))).toEqual([1, 0]);
  });

  test('twice the usual is worth one half; servers that do not count are counted for', () => {
    expect(thinking({ median: 100 }).score(thought('x', 200)).value).toBe(0.5);
    expect(thinking({ median: 10 }).score(thought('y'.repeat(80))).value).toBe(0.5);
  });

  test('a loop is worth next to nothing', () => {
    const { value, reason } = thinking({ median: 1000 }).score(thought(wait.repeat(20), 400));
    expect(value).toBeCloseTo(0.05, 10);
    expect(reason).toBe('400 tokens of thinking, usually 1000; 95% of it repeats itself');
  });

  test('compares with the agent’s own median where none is given', () => {
    expect(thinking().score(thought('x', 200)).value).toBeNull();
    const norms = new Map([['reasoning tokens', 50]]);
    expect(thinking().score({ ...thought('x', 200), norms }).value).toBe(0.25);
  });

  test('what is known to have failed is no part of what is usual', () => {
    const { norm } = thinking();
    expect(norm!.of(thought('x', 200))).toBe(200);
    expect(norm!.of({ ...thought('x', 200), signals: [measured('resolved', 0)] })).toBeNull();
  });
});

describe('the repeated share of a text', () => {
  test('is of words in spans that stood before', () => {
    const span = 'one two three four five six seven eight nine ten eleven twelve';
    expect(repeatedShare(span)).toBe(0);
    expect(repeatedShare(`${span} and ${span}`)).toBe(12 / 25);
    expect(repeatedShare(Array.from({ length: 500 }, (_, i) => `word${i}`).join(' '))).toBe(0);
  });
});

describe('steps', () => {
  const lost = converse('Where is order 7?', [
    { say: [['get_order', '{"id":7}']], results: ['{"status":"sent"}'] },
    { say: [['get_order', '{"id":7}']], results: ['{"status":"sent"}'] }, // nothing new, nothing done
    { say: 'It was sent.' },
  ]);
  scorerConformance({
    ...{ scorer: steps(), gold: input(), poor: input([], lost), silent: input([], []) },
    readsAnswers: true,
  });

  test('gives each turn its own', () => {
    const { turns: per, reason } = steps().score(input([], lost));
    // the second: tool choice 0, information 0, format 1, progress 0
    expect(lost.map(({ id }) => per.get(id))).toEqual([1, 0.25, 1]);
    expect(reason).toBe('3 turns: tool choice lacking in 1, information lacking in 1, progress lacking in 1');
  });
});

describe('the right tool for the state', () => {
  const look: Said = { say: [['get_order', '{"id":7}']], results: ['{"status":"sent"}'] };
  const missed: Said = { ...look, results: ['{"error":"no such order"}'] };
  const cancel: Said = { say: [['cancel_order', '{"id":7}']], results: ['{"status":"cancelled"}'] };
  const both: Said = {
    say: [
      ['get_order', '{"id":7}'],
      ['cancel_order', '{"id":7}'],
    ],
    results: ['{"status":"sent"}', '{"status":"cancelled"}'],
  };
  const tools = ['get_order', 'cancel_order'].map((name) => ({ type: 'function', function: { name, parameters: {} } }));
  const working = (...said: Said[]) =>
    input(
      [],
      converse('Cancel order 7.', [...said, { say: 'Done.' }]).map((one) => ({
        ...one,
        request: { ...one.request, tools },
      })),
    );
  const careful = toolUse({ needs: { cancel_order: ['get_order'] } });
  scorerConformance({
    ...{ scorer: careful, gold: working(look, cancel), poor: working(cancel, look), silent: input([], []) },
    readsAnswers: true,
  });

  test('is one whose time has come: what it needs went well in an earlier turn', () => {
    const worth = (...said: Said[]) => careful.score(working(...said)).value;
    expect(worth(look, cancel)).toBe(1);
    expect(worth(cancel, look)).toBe(0.5);
    expect(worth(both)).toBe(0.5);
    expect(worth(missed, cancel)).toBe(0.25);
    expect(careful.score(working(cancel)).reason).toBe('1 tool call: 1 before its time');
    expect(toolUse().score(working(cancel)).value).toBe(1);
    expect(careful.version).not.toBe(toolUse().version);
    expect(toolUse({ needs: {} }).version).toBe('["tool-use",4]');
    expect(() => toolUse({ needs: { cancel_order: [] } })).toThrow("'cancel_order' needs nothing");
  });
});

describe('tool use that recovers', () => {
  test('is worth more where it is asked to be', () => {
    const again = converse('Where is order 7?', [
      { say: [['get_order', '{"id":70}']], results: ['{"error":"no such order"}'] },
      { say: [['get_order', '{"id":7}']], results: ['{"status":"sent"}'] },
      { say: 'Sent.' },
    ]);
    expect(toolUse().score(input([], again)).value).toBe(0.75);
    expect(toolUse({ recovered: 0.9 }).score(input([], again))).toMatchObject({
      value: 0.95,
      reason: '2 tool calls: 1 answered by an error and recovered from',
    });
    expect(toolUse().version).not.toBe(toolUse({ recovered: 0.9 }).version);
  });
});
