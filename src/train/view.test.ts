import { describe, expect, it } from 'vitest';
import { type StepMetrics, toJsonLine, toPrometheus } from './metrics.ts';
import type { RunRecord } from './run-record.ts';
import { progressBar, renderRun, secondsLeft, sparkline, timeRows } from './view.ts';

const run: RunRecord = {
  id: 'r1',
  agent: 'desk',
  recipe: 'grpo',
  settings: {},
  base: 'b',
  folder: 'f',
  seed: 1,
  steps: 4,
  step: 2,
  status: 'running',
  reason: null,
  budget: {},
  spent: { seconds: 20, tokens: 10, money: 0 },
  request: null,
  owner: 'h:1',
  heartbeatAt: 0,
  createdAt: 0,
  internal: false,
};
const steps: StepMetrics[] = [0, 1].map((step) => ({
  step,
  stage: 'grpo',
  stageStep: step,
  values: { reward_mean: 0.25 + step / 2, seconds: 10 },
  taskTypes: { 'refund "x"': { reward: 0.5, success: 0.5, attempts: 2 } },
}));

describe('the terminal view', () => {
  it('draws curves from low to high and a bar of the share done', () => {
    expect(sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8)).toBe('▁▂▃▄▅▆▇█');
    expect(sparkline([0, 0, 7, 7], 2)).toBe('▁█');
    expect(sparkline([5, 5], 10)).toBe('▁▁');
    expect(progressBar(0.5, 4)).toBe('██░░');
  });

  it('says where the time went, of the newest steps and of all', () => {
    const figures = { sampling_seconds: 6, environment_seconds: 1, training_seconds: 2, waiting_seconds: 0.5 };
    const timed = steps.map((one) => ({ ...one, values: { ...one.values, ...figures, pawl_seconds: 0.5 } }));
    expect(renderRun(run, timed, 80)).toContain(
      'time         sampling 60%  environment 10%  training 20%  waiting 5%  Pawl 5%',
    );
    expect(timeRows(timed, 1)).toEqual([
      ['2', '10.00', '6.00', '1.00', '2.00', '0.50', '0.50'],
      ['all 2', '20.00', '12.00', '2.00', '4.00', '1.00', '1.00'],
    ]);
    expect(timeRows(steps, 5)).toEqual([]);
  });

  it('says how far the run is and how long it will take', () => {
    expect(secondsLeft(run, steps)).toBe(20);
    const text = renderRun(run, steps, 80);
    expect(text).toContain('2/4  grpo  20 s, 20 s left');
    expect(text).toMatch(/reward +0\.750 {2}▁█/);
    expect(text).toContain('refund "x" 50%');
    expect(text).not.toContain('KL');
  });
});

describe('exported metrics', () => {
  it('have Prometheus names, a help line each, and escaped labels', async () => {
    const text = await toPrometheus([{ id: 'r1', last: steps[1]! }]);
    expect(text).toContain('# TYPE pawl_train_reward_mean gauge');
    expect(text).toContain('pawl_train_reward_mean{run="r1",stage="grpo"} 0.75');
    expect(text).toContain('pawl_train_step{run="r1",stage="grpo"} 2');
    expect(text).toContain('pawl_train_task_type_success{run="r1",stage="grpo",task_type="refund \\"x\\""} 0.5');
  });

  it('are one JSON object a line', () => {
    expect(JSON.parse(toJsonLine('r1', steps[0]!))).toMatchObject({ run: 'r1', step: 0, reward_mean: 0.25 });
  });
});
