import { expect, test } from 'vitest';
import { paint } from '../terminal.ts';
import type { Overview } from './overview.ts';
import { overviewLines } from './overview-show.ts';

const terminal = { columns: 100, paint: paint(false) };
const overview: Overview = {
  agent: 'desk',
  loop: {
    ...{ turn: 2, stage: 'train', done: ['collect', 'score', 'curate'], paused: false },
    ...{ next: { kind: 'run', reason: 'Nothing was trained in this turn.' } },
    progress: { stage: 'train', share: 0.25, text: 'step 18 of 73' },
  },
  stages: {
    ...{ most: 50_000, conversations: { day: 240, week: 50_000 }, errors: { day: 0, week: 1 }, traces: 1_200 },
    ...{ signals: { feedback: 1, outcome: 2, label: 0 }, scores: { week: 239, mean: 0.456 } },
    ...{ datasets: { week: 1, newest: 'desk-v2', rows: 1_102 }, runs: { week: 2, running: 1 } },
    ...{ reports: { week: 1, ended: 2, passed: 1 }, rollouts: { week: 1, open: 0, promoted: 1, rolledBack: 0 } },
    ...{ golden: 150, judgingMoney: 0 },
    serving: { name: 'desk-1', model: 'm', since: new Date('2026-01-31T14:02:11Z'), killed: false },
  },
  waiting: [{ kind: 'review', id: null, sentence: '3 wait for a \u001b[2Jreviewer.', command: 'pawl review next' }],
  gains: [
    {
      ...{ turn: 1, endedAt: 0, before: 0.427, after: 0.74, interval: [0.216, 0.401] },
      ...{ verdict: 'pass', promoted: true, money: 1.5 },
    },
  ],
  go: {
    verdict: 'not yet',
    checks: [
      { name: 'conversations', value: 1_200, threshold: 2_000, end: 'inconclusive', wayOut: 'Send more.' },
      { name: 'return', value: null, threshold: 1.5, end: 'unmeasured', wayOut: 'Say what a success is worth.' },
    ],
    phase: { name: 'pilot', traces: 500, money: 500, gain: 0.03 },
  },
  money: { cost: 1.5, savedPerWeek: null, return: null, paybackWeeks: null, unmeasured: ['Worth is not set.'] },
  deploymentsSucceeded: 1,
  evaluationsPassed: 0.5,
};

test('the overview says where the loop is, what waits, what it gained and cost, and whether to go on', () => {
  expect(overviewLines(overview, terminal)).toEqual([
    'desk: desk-1 answers since 2026-01-31 14:02',
    '',
    'Turn 2',
    '  collect     240 conversations today, 50,000 or more this week',
    '  score       mean reward 0.46 of 239 this week',
    '  curate      1,102 examples in desk-v2',
    '▸ train       1 running right now; step 18 of 73, 25.0%',
    '  evaluate    1 of 2 evaluations passed',
    '  deploy      1 rollouts promoted',
    '  next        Nothing was trained in this turn.',
    '',
    'Needs a person now',
    '  review      3 wait for a ␛[2Jreviewer.',
    '              pawl review next',
    '',
    'Gain per turn',
    'TURN  BEFORE  AFTER  GAIN                    VERDICT  ENDED     COST',
    '   1   42.7%  74.0%  +31.3 (+21.6 to +40.1)  pass     promoted  1.50',
    '',
    'Cost and return',
    '  cost so far 1.50',
    '  rollouts    100.0% held; wanted: 95%',
    '  evaluations 50.0% passed',
    '  unmeasured  Worth is not set.',
    '',
    'Go or no-go: not yet',
    '  Phase pilot, meant for 500 conversations, 500.00, +3.0 points.',
    'CHECK            NOW  WANTED  END           WHAT WOULD BRING IT',
    'conversations  1,200   2,000  inconclusive  Send more.',
    'return             –    1.50  unmeasured    Say what a success is worth.',
  ]);
});

test('where nothing has happened yet it says so, and what would bring something', () => {
  const stages = {
    ...overview.stages,
    ...{ scores: { week: 0, mean: null }, datasets: { week: 0, newest: null, rows: null }, serving: null },
  } as Overview['stages'];
  const loop: Overview['loop'] = { ...overview.loop, turn: null, stage: null, done: [], progress: null };
  const lines = overviewLines({ ...overview, stages, loop, waiting: [], gains: [] }, terminal);
  for (const line of [
    'desk: no release serves yet; calls go as they come to an upstream, where there is one.',
    'The loop has not turned yet',
    '  nothing',
    '  No turn has been evaluated yet.',
    '  curate      no dataset yet',
  ])
    expect(lines).toContain(line);
});
