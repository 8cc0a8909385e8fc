import { describe, expect, test } from 'vitest';
import { signal } from '../store/fixtures.ts';
import { feedback } from './feedback.ts';
import { converse, trajectory } from './fixtures.ts';
import { outcome } from './outcome.ts';
import { isBroken, score as schema } from './score.ts';
import type { Scorer } from './scorer.ts';
import { toolUse } from './tool-use.ts';
import { penalty, scoreOf, weighted } from './weighted.ts';

const spec = weighted({ resolved: [0.5, outcome('resolved')], tools: [0.3, toolUse()], feedback: [0.2, feedback()] });
const turns = converse('Where is order 7?', [
  { say: [['get_order', '{"id":7}']], results: ['{"error":"no such order"}'] }, // tools: 0.5
  { say: 'I cannot find it.' },
]);
const about = { day: '2026-05-20', at: 5 };
const resolved = signal({ kind: 'outcome', name: 'resolved', value: 1, identity: 'r', user: null });

describe('a weighted score', () => {
  test('is the weighted mean of its parts', async () => {
    const score = await scoreOf(
      spec,
      { trajectory: trajectory(), turns, signals: [resolved, signal({ value: 0 })] },
      about,
    );
    expect(schema.parse(score)).toEqual(score);
    // 0.5 × 1 + 0.3 × 0.5 + 0.2 × 0
    expect(score.total).toBe(0.65);
    expect(score.measured).toBe(1);
    expect(score.parts.tools).toEqual({
      value: 0.5,
      weight: 0.3,
      reason: '1 tool call: 1 answered by an error',
    });
    expect(score.turns).toEqual([
      { turn: turns[0]!.id, value: 0.5, parts: { tools: 0.5 } },
      { turn: turns[1]!.id, value: null, parts: {} },
    ]);
  });

  test('leaves out what was not measured and shares its weight among the rest', async () => {
    const score = await scoreOf(spec, { trajectory: trajectory(), turns, signals: [resolved] }, about);
    // (0.5 × 1 + 0.3 × 0.5) / 0.8
    expect(score.total).toBe(0.8125);
    expect(score.measured).toBe(0.8);
    expect(score.parts.feedback).toEqual({ value: null, weight: 0.2, reason: 'no feedback' });
  });

  test('is no score where nothing was measured', async () => {
    const silent = converse('Hello', [{ say: 'Hello.' }]);
    const score = await scoreOf(spec, { trajectory: trajectory(), turns: silent, signals: [] }, about);
    expect(score.total).toBeNull();
    expect(score.measured).toBe(0);
  });

  test('is no score where a scorer failed or answered nonsense, and keeps the reason', async () => {
    const scorer = (score: Scorer['score']): Scorer => ({ name: 'x', version: '1', score });
    const saying = (value: number) => scorer(() => ({ value, reason: '', turns: new Map() }));
    const odd = weighted({
      good: [1, outcome('resolved')],
      wild: [1, saying(1.5)],
      nan: [1, saying(Number.NaN)],
      thrown: [
        1,
        scorer(() => {
          throw new Error('no luck');
        }),
      ],
    });
    const score = await scoreOf(odd, { trajectory: trajectory(), turns, signals: [resolved] }, about);
    expect(schema.parse(score)).toEqual(score);
    expect(score).toMatchObject({ total: null, measured: 0.25 });
    expect(score.turns.map(({ value }) => value)).toEqual([null, null]);
    expect(score.parts.good).toEqual({ value: 1, weight: 1, reason: "'resolved' is 1" });
    expect(score.parts.wild).toMatchObject({ failed: true, reason: 'scorer wild gave 1.5, which is not in 0–1' });
    expect(score.parts.nan!.reason).toBe('scorer nan gave NaN, which is not in 0–1');
    expect(score.parts.thrown!.reason).toBe('scorer thrown failed: no luck');
    expect(isBroken(score)).toBe(true);
  });

  test('waits for scorers that ask, all at the same time, and no longer than each may take', async () => {
    const asked: string[] = [];
    let all: () => void;
    const everyoneAsked = new Promise<void>((resolve) => {
      all = resolve;
    });
    const judge = (name: string): Scorer => ({
      name,
      version: '1',
      async score() {
        asked.push(name);
        if (asked.length === 2) all();
        await everyoneAsked; // hangs for ever if they are asked one after the other
        return { value: 0.5, reason: 'a judge', turns: new Map() };
      },
    });
    let stopped = false;
    const hanging: Scorer = {
      name: 'hanging',
      version: '1',
      timeoutSeconds: 0.01,
      score: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            stopped = true;
            reject(signal.reason);
          });
        }),
    };
    const judged = weighted({ a: [1, judge('a')], b: [1, judge('b')], late: [2, hanging] });
    const score = await scoreOf(judged, { trajectory: trajectory(), turns, signals: [resolved] }, about);
    expect(score).toMatchObject({ total: null, measured: 0.5 });
    expect(score.parts.late).toEqual({
      value: null,
      weight: 2,
      reason: 'scorer late did not answer within 0.01 s',
      failed: true,
    });
    expect(stopped).toBe(true);
    expect(isBroken(score)).toBe(true);
  });
});

describe('a penalty', () => {
  const says = (value: number | null): Scorer => ({
    name: 'x',
    version: '1',
    score: () => ({ value, reason: 'x', turns: new Map() }),
  });
  const totalOf = async (a: number | null, b: number | null, slow: number | null) => {
    const some = weighted({ a: [3, says(a)], b: [5, says(b)], slow: penalty(2, says(slow)) });
    const { total, measured } = await scoreOf(some, { trajectory: trajectory(), turns, signals: [] }, about);
    return [total, measured];
  };
  test.each([
    [1, 1, 1, 0.8, 1], // 0.3 + 0.5: the penalty's share can be lost, not earned
    [1, 1, 0.5, 0.7, 1], // less half of 0.2
    [1, 0, 0, 0.1, 1], // 0.3 − 0.2
    [0, 0, 0, 0, 1], // clamped
    [1, null, 1, 0.8, 0.5], // a speaks for b too
    [0.5, null, 0, 0.2, 0.5], // 0.8 × 0.5 − 0.2
    [0.5, 1, null, 0.65, 0.8], // 0.15 + 0.5
    [null, null, 0, null, 0], // a penalty alone is no score
  ])('%s, %s and penalty %s make %s, with %s of the weight', async (a, b, slow, total, share) => {
    expect(await totalOf(a, b, slow)).toEqual([total, share]);
  });
});

describe('a reward spec', () => {
  test('has the same version in whatever order it is written, and another for any other weight or setting', () => {
    const make = (a: number, name = 'resolved') => weighted({ a: [a, outcome(name)], b: [1, feedback()] }).version;
    expect(weighted({ b: [1, feedback()], a: [1, outcome('resolved')] }).version).toBe(make(1));
    const penalised = weighted({ a: penalty(1, outcome('resolved')), b: [1, feedback()] }).version;
    expect(new Set([make(1), make(2), make(1, 'other'), penalised]).size).toBe(4);
  });

  test('refuses weights and names that mean nothing', () => {
    expect(() => weighted({})).toThrow(/at least one part/);
    expect(() => weighted({ a: penalty(1, feedback()) })).toThrow(/no penalty/);
    expect(() => weighted({ a: [0, feedback()] })).toThrow(/weight 0/);
    expect(() => weighted({ A: [1, feedback()] })).toThrow(/'A' cannot name/);
  });
});
