import { expect, test } from 'vitest';
import { explain } from './explain.ts';

const part = (value: number | null, weight: number, reason: string) => ({ value, weight, reason });

test('what the parts add sums up to the total', () => {
  const { summary, parts } = explain({
    total: 0.78,
    measured: 0.55,
    parts: {
      judge: part(0.9, 0.3, 'accurate'),
      context_recall: part(null, 0.45, 'nothing was retrieved'),
      feedback: part(0.8, 0.2, 'one voter'),
      latency: { ...part(0.4, 0.05, 'the longest answer took 13.0 s'), penalty: true },
    },
  });
  // 0.95 × (0.3 × 0.9 + 0.2 × 0.8) / 0.5 − 0.05 × 0.6
  expect(parts.reduce((sum, { adds }) => sum + (adds ?? 0), 0)).toBeCloseTo(0.787, 12);
  expect(summary).toBe('0.780 of 1, good: 3 of 4 parts spoke, with 55% of the weight.');
  expect(parts.map(({ sentence }) => sentence)).toEqual([
    'judge is good and adds 0.513 of 0.570: accurate.',
    'context recall says nothing: nothing was retrieved.',
    'feedback is good and adds 0.304 of 0.380: one voter.',
    'latency costs 0.030: the longest answer took 13.0 s.',
  ]);
});

test('a reason that is sentences of its own ends once, and none is no reason', () => {
  const { parts } = explain({
    total: 0.5,
    measured: 1,
    parts: { judge: part(0.5, 0.5, 'Right. But curt.'), mine: part(0.5, 0.5, '') },
  });
  expect(parts.map(({ sentence }) => sentence)).toEqual([
    'judge is half and half and adds 0.250 of 0.500: Right. But curt.',
    'mine is half and half and adds 0.250 of 0.500.',
  ]);
});

test('says what failed, and what nobody could tell', () => {
  const late = { ...part(null, 1, 'scorer judge did not answer within 60 s'), failed: true as const };
  expect(explain({ total: null, measured: 0, parts: { judge: late } })).toMatchObject({
    summary: 'No score yet: judge failed.',
    parts: [
      {
        adds: null,
        sentence: 'judge could not be asked (scorer judge did not answer within 60 s); the next run asks again.',
      },
    ],
  });
  const beside = explain({ total: null, measured: 0.5, parts: { judge: late, tools: part(1, 1, 'all sound') } });
  expect(beside.parts[1]).toMatchObject({
    adds: null,
    sentence: 'tools is as good as it can be, and adds nothing while there is no score: all sound.',
  });
  expect(explain({ total: null, measured: 0, parts: { feedback: part(null, 1, 'no feedback') } }).summary).toBe(
    'No score: nothing here tells how good it was.',
  );
});
