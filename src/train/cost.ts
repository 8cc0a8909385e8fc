/**
 * What a run will cost, before anything starts: tokens, time on the engine that is configured, GPU-hours and money. An estimate, and it
 * says from what: tokens are the stages' own counts, time is tokens over the rates that a probe measured on that engine (probe.ts),
 * GPU-hours, for a machine that is not there, follow from arithmetic (about 6 operations per parameter and token for learning, 2 for
 * sampling and scoring) at a usual utilisation. Pure.
 */
import type { Rates } from './probe.ts';
import type { Stage } from './stage.ts';

export type Accelerator = {
  readonly name: string;
  /** Dense bf16 operations per second, from the data sheet. */
  readonly operations: number;
  /** On demand, in US dollars. Prices move: set your own. */
  readonly dollarsPerHour: number;
};

/** Data-sheet speeds; prices are round figures for on-demand rental, meant to be replaced by what you pay. */
export const accelerators: readonly Accelerator[] = [
  { name: 'L40S', operations: 362e12, dollarsPerHour: 1 },
  { name: 'A100-80GB', operations: 312e12, dollarsPerHour: 1.8 },
  { name: 'H100', operations: 989e12, dollarsPerHour: 3 },
  { name: 'H200', operations: 989e12, dollarsPerHour: 3.8 },
];

/** Share of the data-sheet speed that learning reaches; sampling is bound by memory and reaches much less. */
const utilisation = { learning: 0.35, sampling: 0.1 };

type Sized = Pick<Stage, 'work'>;

export type CostEstimate = {
  /** Sampled and learned from, as a run counts them. */
  readonly tokens: number;
  readonly accelerator: string;
  readonly gpuHours: number;
  readonly dollars: number;
  readonly sentence: string;
};

/** What it would be on an accelerator, by arithmetic. */
export function estimateCost(
  stages: readonly Sized[],
  parameters: number,
  accelerator: Accelerator = accelerators[2]!,
): CostEstimate {
  const sum = (of: (work: Stage['work']) => number) => stages.reduce((n, { work }) => n + of(work), 0);
  const learning = sum(({ trained, forwarded }) => 6 * trained + 2 * forwarded) * parameters;
  const sampling = sum(({ sampled }) => 2 * sampled) * parameters;
  const seconds =
    learning / (accelerator.operations * utilisation.learning) +
    sampling / (accelerator.operations * utilisation.sampling);
  const tokens = sum(({ sampled, trained }) => sampled + trained);
  const gpuHours = seconds / 3600;
  const dollars = gpuHours * accelerator.dollarsPerHour;
  return {
    tokens,
    accelerator: accelerator.name,
    gpuHours,
    dollars,
    sentence: `About ${amount(tokens)} tokens: ${amount(gpuHours)} ${accelerator.name} hours by arithmetic (${money(dollars)} at $${accelerator.dollarsPerHour} an hour).`,
  };
}

/** How long each stage takes at the rates that were measured, in seconds. */
export const stageSeconds = ({ work, steps }: Sized & Pick<Stage, 'steps'>, rates: Rates): number =>
  work.trained / rates.trained +
  (rates.forwarded === null ? 0 : work.forwarded / rates.forwarded) +
  (rates.sampled === null ? 0 : work.sampled / rates.sampled) +
  steps * rates.stepSeconds;

/** What playing the next batch meanwhile would save of a stage: the shorter of sampling and learning. */
export const lagSaves = ({ work }: Sized, rates: Rates): number => {
  if (rates.sampled === null || work.sampled === 0) return 0;
  const learning = work.trained / rates.trained + (rates.forwarded === null ? 0 : work.forwarded / rates.forwarded);
  return Math.min(work.sampled / rates.sampled, learning);
};

export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}

const money = (dollars: number): string => (dollars < 0.01 ? 'under $0.01' : `$${dollars.toFixed(2)}`);

export function amount(n: number): string {
  if (n >= 1e9) return `${(n / 1e9).toFixed(1)}B`;
  if (n >= 1e6) return `${(n / 1e6).toFixed(1)}M`;
  if (n >= 1e3) return `${(n / 1e3).toFixed(1)}k`;
  return n >= 10 ? String(Math.round(n)) : n >= 0.01 ? n.toFixed(2) : 'under 0.01';
}
