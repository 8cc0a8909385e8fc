import { expect, test } from 'vitest';
import { historyRow, nextLines, turnLines, usersLines } from './show.ts';
import type { LoopState, LoopTurn } from './turn.ts';

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

test('a turn shows what it cost and what it gained', () => {
  const turn: LoopTurn = {
    ...{ agent: 'desk', number: 2, seed: 2, startedAt: Date.UTC(2026, 0, 5, 10), endedAt: Date.UTC(2026, 0, 7) },
    done: ['collect'],
    state: {
      begun: { trigger: 'evidence', reason: '500 new trajectories have a score.' },
      collect: { since: 0, until: 1, conversations: 612 },
      evaluate: { report: 'r', verdict: 'fail', before: 0.5, after: 0.4, interval: [-0.2, 0.01], p: 0.1, reasons: [] },
      spent: { seconds: 5400, tokens: 1_234_567, money: 3 },
      ended: 'Run desk-turn-2 was stopped.',
    },
  };
  expect(historyRow(turn)).toEqual([
    ...['2', '2026-01-05 10:00', 'evidence', '50.0%', '40.0%', '−10.0 (−20.0 to +1.0)'],
    ...['1 h 30 min, 1235k tokens, 3.00 in money', 'Run desk-turn-2 was stopped.'],
  ]);
  expect(turnLines({ ...turn, endedAt: null }).slice(0, 4)).toEqual([
    'Turn 2, seed 2: at score',
    '  500 new trajectories have a score.',
    '  Run desk-turn-2 was stopped.',
    '  collect   612 conversations through the gateway',
  ]);
  expect(nextLines({ kind: 'wait', until: Date.UTC(2026, 0, 12), reason: 'Nothing is due.' })).toEqual([
    'Waits until 2026-01-12 00:00.',
    'Nothing is due.',
  ]);
});
