/** The checks of a rollout, in the order they are told. */
import type { RolloutSettings } from '../rollout.ts';
import type { Check, Finding, Sides } from './check.ts';
import type { DeclaredCheck } from './declared.ts';
import { errors } from './errors.ts';
import { feedback } from './feedback.ts';
import { latency } from './latency.ts';
import { outcome } from './outcome.ts';
import { prometheus } from './prometheus.ts';
import { ratio } from './ratio.ts';
import { signals } from './signals.ts';
import { slice } from './slice.ts';

/** What each check measured, by its name. */
export type Measurements = Readonly<Record<string, unknown>>;

const checksOf = ({ outcome: called, checks = [] }: RolloutSettings): readonly Check[] => [
  ratio,
  errors,
  latency,
  ...(called === null ? [] : [outcome(called), slice(called)]),
  feedback,
  ...checks.map(declared),
];

const declared = (one: DeclaredCheck): Check => ('signals' in one ? signals(one) : prometheus(one));

export async function measure(sides: Sides): Promise<Measurements> {
  const measured: [string, unknown][] = [];
  for (const check of checksOf(sides.settings)) measured.push([check.name, await check.measure(sides)]);
  return Object.fromEntries(measured);
}

/**
 * Pure. The error probability is split evenly over the checks that can fail, and over the steps so that the first, where few
 * users pay for the finding, has the most.
 */
export function judge(measurements: Measurements, settings: RolloutSettings, step: number): Finding[] {
  const checks = checksOf(settings);
  const alpha =
    ((1 - shadowPart(settings)) * settings.alpha * partOf(step, settings.steps.length)) / (checks.length - 1);
  return checks.flatMap((check) => check.judge(measurements[check.name], settings, alpha));
}

/** 1/2, 1/6, 1/12 … of the whole, made to add up to 1 over so many steps. */
const partOf = (step: number, steps: number): number => (steps + 1) / (steps * (step + 1) * (step + 2));

/** Of the error probability, what shadow traffic may take. */
export const shadowPart = ({ shadow }: Pick<RolloutSettings, 'shadow'>): number => (shadow.share > 0 ? 0.1 : 0);
