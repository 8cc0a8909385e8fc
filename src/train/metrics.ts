/**
 * The figures of one training step, and one table of what they are called and mean: the same name in the database, in
 * metrics.jsonl and, with `pawl_train_` before it, for Prometheus. Absent means not measured, never 0.
 */
import { Gauge, Registry } from 'prom-client';

export type StepMetrics = {
  /** Counted from 0 over the whole run. */
  readonly step: number;
  /** Which stage of the recipe, and its own count. */
  readonly stage: string;
  readonly stageStep: number;
  readonly values: Readonly<Partial<Record<MetricName, number>>>;
  /** Mean reward and success of the step's attempts, per task type. */
  readonly taskTypes?: Readonly<
    Record<string, { readonly reward: number; readonly success: number; readonly attempts: number }>
  >;
};

/** What a stage reports; run.ts adds the step and the clock. */
export type StageMetrics = Pick<StepMetrics, 'values' | 'taskTypes'>;

export const metricTable = {
  reward_mean: 'Mean reward of the attempts of this step.',
  reward_std:
    'Standard deviation of reward inside a group, mean over groups. Falls to 0 when there is nothing to learn.',
  success: 'Share of attempts that solved their task.',
  kl: 'KL divergence from the reference per own token, in nats (k3 estimate).',
  entropy: 'Entropy of the next-token distribution at own tokens, in nats.',
  loss: 'The loss that was minimised, normalised as the algorithm says.',
  grad_norm: 'Global norm of the gradient before clipping.',
  learning_rate: 'Learning rate of the step.',
  clip_fraction: 'Share of own tokens whose gradient the clip cut off.',
  zero_variance_fraction: 'Share of groups skipped because all attempts earned the same.',
  sampler_gap:
    'Mean |logprob at training − logprob at sampling| on fresh attempts. Above 0.05 the sampler is not the policy.',
  lag_gap: 'The same on attempts of the weights before (lag 1): how far one step moves the policy.',
  length: 'Tokens the model wrote per attempt or example.',
  accuracy: 'DPO: share of pairs whose chosen side the policy prefers more than the reference does.',
  margin: 'DPO: β times the mean difference of log-ratios.',
  kept_fraction: 'RFT: share of attempts kept as examples.',
  validation_success: 'Success on held-out tasks.',
  tokens: 'Tokens processed in the step: sampled and trained.',
  tokens_per_second: 'Tokens processed per second.',
  seconds: 'Wall time of the step.',
  sampling_seconds: 'Of it: the engine sampled, and did not train.',
  environment_seconds: 'Of it: tools, users, graders, the user’s own agent.',
  training_seconds: 'Of it: the engine trained.',
  waiting_seconds: 'Of it: nothing of these, e.g. weights were loaded or saved.',
  pawl_seconds: 'Of it: Pawl itself was busy.',
} as const;

export type MetricName = keyof typeof metricTable;
export const metricNames = Object.keys(metricTable) as MetricName[];

/** One line of metrics.jsonl. */
export function toJsonLine(run: string, metrics: StepMetrics): string {
  const { step, stage, stageStep, values, taskTypes } = metrics;
  return JSON.stringify({ run, step, stage, stageStep, ...values, ...(taskTypes ? { taskTypes } : {}) });
}

/** The latest step of each run in Prometheus' text format. */
export async function toPrometheus(
  runs: readonly { readonly id: string; readonly last: StepMetrics }[],
): Promise<string> {
  const registry = new Registry();
  const labelNames = ['run', 'stage'];
  const gauge = <L extends string>(name: string, help: string, labels: readonly L[]) =>
    new Gauge({ name: `pawl_train_${name}`, help, labelNames: labels, registers: [registry] });
  const steps = gauge('step', 'Steps finished.', labelNames);
  for (const { id, last } of runs) steps.set({ run: id, stage: last.stage }, last.step + 1);
  for (const name of metricNames) {
    const known = runs.flatMap(({ id, last }) => {
      const value = last.values[name];
      return value === undefined ? [] : [{ run: id, stage: last.stage, value }];
    });
    if (known.length === 0) continue;
    const one = gauge(name, metricTable[name], labelNames);
    for (const { value, ...labels } of known) one.set(labels, value);
  }
  for (const field of runs.some(({ last }) => last.taskTypes) ? (['reward', 'success'] as const) : []) {
    const help = `Mean ${field} of the attempts of this step, per task type.`;
    const perType = gauge(`task_type_${field}`, help, [...labelNames, 'task_type']);
    for (const { id, last } of runs)
      for (const [type, figures] of Object.entries(last.taskTypes ?? {}))
        perType.set({ run: id, stage: last.stage, task_type: type }, figures[field]);
  }
  return registry.metrics();
}
