/**
 * What a run will cost, before anything starts: tokens, time on this machine, GPU-hours and money. An estimate, and it says
 * from what: tokens are the stages' own counts, time here is tokens over a measured rate, GPU-hours follow from arithmetic
 * (about 6 operations per parameter and token for learning, 2 for sampling and scoring) at a usual utilisation.
 */
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

/** Operations per token and parameter: a forward is 2, a backward 4. */
const learningShare = { sft: 1, dpo: 0.75, rft: 0.35, grpo: 0.35 } as const;

export type CostEstimate = {
  readonly tokens: number;
  /** null where this machine's rate is not known. */
  readonly secondsHere: number | null;
  readonly accelerator: string;
  readonly gpuHours: number;
  readonly dollars: number;
  readonly sentence: string;
};

export function estimateCost(
  stages: readonly Pick<Stage, 'algorithm' | 'tokens'>[],
  model: { readonly parameters: number; readonly tokensPerSecondHere?: number },
  accelerator: Accelerator = accelerators[2]!,
): CostEstimate {
  const tokens = stages.reduce((n, s) => n + s.tokens, 0);
  let seconds = 0;
  for (const { algorithm, tokens: n } of stages) {
    const learned = n * learningShare[algorithm];
    seconds += (learned * 6 * model.parameters) / (accelerator.operations * utilisation.learning);
    seconds += ((n - learned) * 2 * model.parameters) / (accelerator.operations * utilisation.sampling);
  }
  const gpuHours = seconds / 3600;
  const dollars = gpuHours * accelerator.dollarsPerHour;
  const rate = model.tokensPerSecondHere;
  const secondsHere = rate ? tokens / rate : null;
  const here = secondsHere === null ? '' : ` about ${duration(secondsHere)} on this machine, or`;
  return {
    tokens,
    secondsHere,
    accelerator: accelerator.name,
    gpuHours,
    dollars,
    sentence: `About ${amount(tokens)} tokens:${here} ${amount(gpuHours)} ${accelerator.name} hours (${money(dollars)} at $${accelerator.dollarsPerHour} an hour).`,
  };
}

export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}

const money = (dollars: number): string => (dollars < 0.01 ? 'under $0.01' : `$${dollars.toFixed(2)}`);

function amount(n: number): string {
  if (n >= 1e9) return `${(n / 1e9).toFixed(1)}B`;
  if (n >= 1e6) return `${(n / 1e6).toFixed(1)}M`;
  if (n >= 1e3) return `${(n / 1e3).toFixed(1)}k`;
  return n >= 10 ? String(Math.round(n)) : n >= 0.01 ? n.toFixed(2) : 'under 0.01';
}
