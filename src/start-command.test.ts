import { expect, test } from 'vitest';
import type { LoopState } from './loop-turn.ts';
import { usersLines } from './start-command.ts';

const figure = (success: number, n: number, low: number, high: number) =>
  ({ n, success, interval: [low, high] }) as const;

test('what users got stands beside the golden figures, slice by slice, with intervals', () => {
  const state: LoopState = {
    evaluate: {
      ...{ report: 'r', verdict: 'pass', before: 0.36, after: 0.72, interval: [0.26, 0.449], p: 0, reasons: [] },
    },
    users: {
      outcome: 'resolved',
      all: {
        before: figure(0.4, 200, 0.335, 0.469),
        baseline: figure(0.41, 120, 0.3, 0.5),
        after: figure(0.7, 90, 0.6, 0.78),
      },
      slices: [
        { slice: 'with personal data', before: figure(0.125, 40, 0.05, 0.26), baseline: null, after: null },
        { slice: 'task type mind', before: null, baseline: null, after: figure(1, 9, 0.7, 1) },
      ],
    },
  };
  expect(usersLines(state)).toEqual([
    'resolved              before                beside the candidate  with the candidate',
    'golden cases          36.0%                                       72.0% (+26.0 to +44.9)',
    'all users             40.0% (34–47) of 200  41.0% (30–50) of 120  70.0% (60–78) of 90',
    '  with personal data  12.5% (5–26) of 40    nobody                nobody',
    '  task type mind      nobody                nobody                100.0% (70–100) of 9',
  ]);
  expect(usersLines({ users: null })).toEqual([]);
});
