/** The checks of a rollout, in the order they are told. */
import type { RolloutSettings } from '../rollout.ts';
import type { Check, Finding, Sides } from './check.ts';
import { errors } from './errors.ts';
import { feedback } from './feedback.ts';
import { latency } from './latency.ts';
import { outcome } from './outcome.ts';
import { slice } from './slice.ts';

/** What each check measured, by its name. */
export type Measurements = Readonly<Record<string, unknown>>;

const checksOf = ({ outcome: called }: RolloutSettings): readonly Check[] => [
  errors,
  latency,
  ...(called === null ? [] : [outcome(called), slice(called)]),
  feedback,
];

export async function measure(sides: Sides): Promise<Measurements> {
  const measured: [string, unknown][] = [];
  for (const check of checksOf(sides.settings)) measured.push([check.name, await check.measure(sides)]);
  return Object.fromEntries(measured);
}

/** Pure. The error probability is split evenly over checks and steps. */
export function judge(measurements: Measurements, settings: RolloutSettings): Finding[] {
  const checks = checksOf(settings);
  const alpha = settings.alpha / (checks.length * settings.steps.length);
  return checks.flatMap((check) => check.judge(measurements[check.name], settings, alpha));
}
