/**
 * When a run should end before its last step: pure decisions over the metrics so far. A rule that cannot be measured (no
 * KL in SFT, say) does not fire. The starting values come from reported collapses: within-group deviation of reward falls
 * first, then the gradient spikes, then reward falls (RAGEN, arXiv 2504.20073); entropy is spent early (arXiv 2505.22617).
 */
import type { MetricName, StepMetrics } from './metrics.ts';

export type StopRules = {
  /** KL from the reference per token, in nats, mean of the last `window` steps. */
  readonly maxKl: number;
  /** Entropy as a share of the stage's first steps: below the first or above the second is out of bounds. */
  readonly entropyShare: readonly [number, number];
  /** Within-group deviation of reward as a share of its highest: below this there is nothing left to compare. */
  readonly minRewardStdShare: number;
  /** Steps without a better mean reward (or validation success, where measured) before giving up. 0: never. */
  readonly patience: number;
  /** What counts as better. */
  readonly minGain: number;
  /** Steps a mean is taken over. */
  readonly window: number;
  /** Mean |train − sample| logprob above which the sampler is not the policy that is trained. */
  readonly maxSamplerGap: number;
};

export const stopDefaults: StopRules = {
  maxKl: 0.5,
  entropyShare: [0.05, 5],
  minRewardStdShare: 0.05,
  patience: 60,
  minGain: 0.01,
  window: 8,
  maxSamplerGap: 0.05,
};

export type Budget = {
  readonly seconds?: number | undefined;
  readonly tokens?: number | undefined;
  readonly money?: number | undefined;
};
export type Spent = { readonly seconds: number; readonly tokens: number; readonly money: number };

/** `bad`: the weights are not to be used; `enough`: they are fine, there is just no more to be had. */
export type Stop = { readonly kind: 'bad' | 'enough' | 'budget'; readonly reason: string };

/** `history` is one stage's steps in order. */
export function stopRule(history: readonly StepMetrics[], rules: StopRules): Stop | null {
  const last = history.at(-1);
  if (!last) return null;
  for (const name of ['loss', 'grad_norm', 'reward_mean', 'kl', 'entropy'] as const) {
    const value = last.values[name];
    if (value !== undefined && !Number.isFinite(value))
      return { kind: 'bad', reason: `${name} became ${value} at step ${last.step}.` };
  }
  const gap = recent(history, 'sampler_gap', rules.window);
  if (gap !== null && gap > rules.maxSamplerGap)
    return {
      kind: 'bad',
      reason: `The sampler's logprobs differ from the trainer's by ${short(gap)} per token (allowed: ${rules.maxSamplerGap}); attempts are not the policy's own.`,
    };
  const kl = recent(history, 'kl', rules.window);
  if (kl !== null && kl > rules.maxKl)
    return { kind: 'bad', reason: `KL from the reference is ${short(kl)} nats per token (allowed: ${rules.maxKl}).` };
  const entropy = recent(history, 'entropy', rules.window);
  const first = early(history, 'entropy', rules.window);
  if (entropy !== null && first !== null && first > 0) {
    const [low, high] = rules.entropyShare;
    if (entropy < low * first || entropy > high * first)
      return {
        kind: 'bad',
        reason: `Entropy went from ${short(first)} to ${short(entropy)} nats, outside ${low}–${high} of where it began.`,
      };
  }
  const std = recent(history, 'reward_std', rules.window);
  const highest = peak(history, 'reward_std', rules.window);
  if (std !== null && highest !== null && highest > 0 && std < rules.minRewardStdShare * highest) {
    const success = recent(history, 'success', rules.window) ?? 0;
    return success >= 0.95
      ? { kind: 'enough', reason: `Solved: success is ${short(success)} and the attempts no longer differ.` }
      : {
          kind: 'bad',
          reason: `Reward deviation inside groups collapsed to ${short(std)} (highest: ${short(highest)}) at success ${short(success)}.`,
        };
  }
  return stalled(history, rules);
}

function stalled(history: readonly StepMetrics[], rules: StopRules): Stop | null {
  if (rules.patience === 0) return null;
  const name: MetricName = history.some((m) => m.values.validation_success !== undefined)
    ? 'validation_success'
    : 'reward_mean';
  // Validation is already a mean over many tasks; a step's reward is noisy and needs a window.
  const width = name === 'validation_success' ? 1 : rules.window;
  const values = history.flatMap((m, i) => (m.values[name] === undefined ? [] : [{ i, value: m.values[name] }]));
  let best = Number.NEGATIVE_INFINITY;
  let bestAt = 0;
  for (let k = width - 1; k < values.length; k++) {
    const mean = values.slice(k - width + 1, k + 1).reduce((sum, v) => sum + v.value, 0) / width;
    if (mean >= best + rules.minGain) {
      best = mean;
      bestAt = values[k]!.i;
    }
  }
  const since = history.length - 1 - bestAt;
  if (best === Number.NEGATIVE_INFINITY || since < rules.patience) return null;
  return { kind: 'enough', reason: `No better ${name} than ${short(best)} for ${since} steps.` };
}

export function overBudget(spent: Spent, budget: Budget): Stop | null {
  for (const name of ['seconds', 'tokens', 'money'] as const) {
    const limit = budget[name];
    if (limit !== undefined && spent[name] >= limit)
      return { kind: 'budget', reason: `The budget of ${limit} ${name} is spent (${short(spent[name])}).` };
  }
  return null;
}

const measured = (history: readonly StepMetrics[], name: MetricName): number[] =>
  history.flatMap((m) => m.values[name] ?? []);
const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

/** Mean of the last `window` measurements; null until there are that many. */
function recent(history: readonly StepMetrics[], name: MetricName, window: number): number | null {
  const values = measured(history, name);
  return values.length < window ? null : mean(values.slice(-window));
}

function early(history: readonly StepMetrics[], name: MetricName, window: number): number | null {
  const values = measured(history, name);
  return values.length < window ? null : mean(values.slice(0, window));
}

function peak(history: readonly StepMetrics[], name: MetricName, window: number): number | null {
  const values = measured(history, name);
  let highest: number | null = null;
  for (let end = window; end <= values.length; end++)
    highest = Math.max(highest ?? 0, mean(values.slice(end - window, end)));
  return highest;
}

const short = (value: number): string => String(Number(value.toPrecision(3)));
