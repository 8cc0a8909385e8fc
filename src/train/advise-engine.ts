/**
 * Advice for the engine that is configured: how long each stage of the recipe takes there and what that costs, from rates that were measured
 * on it, and whether the recipe fits the budget of a run. Pure.
 */
import { amount, duration, lagSaves, stageSeconds } from './cost.ts';
import type { Rates } from './probe.ts';
import { type RecipeName, recipeNames } from './recipe-names.ts';
import type { Stage } from './stage.ts';

export type EngineAdvice = {
  /** The engine, in words. */
  readonly engine: string;
  readonly rates: Rates;
  readonly stages: readonly {
    readonly stage: string;
    readonly steps: number;
    readonly sampled: number;
    readonly trained: number;
    readonly seconds: number;
  }[];
  readonly seconds: number;
  /** In the currency of `moneyPerHour`; null: nobody said what an hour costs. */
  readonly money: number | null;
  /** What fits the budget: the whole recipe, or as much of its beginning as does; null: not even that. */
  readonly fits: RecipeName | null;
  readonly reasons: readonly string[];
};

export function adviseOnEngine(
  engine: { readonly name: string; readonly overlaps: boolean; readonly computesHere: boolean },
  rates: Rates,
  recipe: RecipeName,
  stages: readonly Pick<Stage, 'name' | 'steps' | 'work'>[],
  means: { readonly moneyPerHour?: number | undefined; readonly hours?: number | undefined; readonly lag: number },
): EngineAdvice {
  const rows = stages.map((stage) => ({
    stage: stage.name,
    steps: stage.steps,
    sampled: stage.work.sampled,
    trained: stage.work.trained,
    seconds: stageSeconds(stage, rates) - (means.lag > 0 ? lagSaves(stage, rates) : 0),
  }));
  const seconds = rates.firstSeconds + rows.reduce((sum, row) => sum + row.seconds, 0);
  const { moneyPerHour, hours } = means;
  const reasons: string[] = [];
  if (moneyPerHour === undefined) reasons.push('What an hour there costs is not set (train.moneyPerHour).');
  const saved = stages.reduce((sum, stage) => sum + lagSaves(stage, rates), 0);
  if (means.lag === 0 && engine.overlaps && !engine.computesHere && saved > 0.1 * seconds)
    reasons.push(`With --lag 1 it samples while it trains: about ${duration(seconds - saved)}.`);
  const fits = fitting(
    recipe,
    rows,
    hours === undefined ? Number.POSITIVE_INFINITY : 3600 * hours - rates.firstSeconds,
  );
  if (fits !== recipe)
    reasons.push(
      `The budget of a run is ${duration(3600 * hours!)} (train.budget.hours), which ${
        fits === null ? 'not even its first stage fits: it would be stopped there' : `${fits} alone fits`
      }.`,
    );
  const money = moneyPerHour === undefined ? null : (seconds / 3600) * moneyPerHour;
  return { engine: engine.name, rates, stages: rows, seconds, money, fits, reasons };
}

/** The longest beginning of a recipe that is a recipe itself and fits. */
function fitting(recipe: RecipeName, rows: EngineAdvice['stages'], seconds: number): RecipeName | null {
  const algorithms = recipe.split('-');
  for (let size = algorithms.length; size > 0; size--) {
    const part = recipeNames.find((name) => name === algorithms.slice(0, size).join('-'));
    if (part && rows.slice(0, size).reduce((sum, row) => sum + row.seconds, 0) <= seconds) return part;
  }
  return null;
}

export function engineLines({ engine, rates, stages, seconds, money, reasons }: EngineAdvice): string[] {
  const rate = (value: number | null, what: string) => (value === null ? [] : [`${amount(value)} tokens/s ${what}`]);
  return [
    `Engine: ${engine}. Measured there: ${[
      ...rate(rates.trained, 'learned from'),
      ...rate(rates.sampled, 'sampled'),
      `${rates.stepSeconds.toFixed(2)} s a step besides`,
      ...(rates.firstSeconds >= 1 ? [`${duration(rates.firstSeconds)} once, to compile`] : []),
    ].join(', ')}.`,
    ...stages.map(({ stage, steps, sampled, trained, seconds: takes }) => {
      const tokens = [...(sampled > 0 ? [`${amount(sampled)} tokens sampled`] : []), `${amount(trained)} learned from`];
      return `  ${stage}: ${steps} steps, ${tokens.join(', ')}: ${duration(takes)}`;
    }),
    `About ${duration(seconds)}${money === null ? '' : `, ${money < 0.01 ? 'under 0.01' : money.toFixed(2)} by train.moneyPerHour`}. ${reasons.join(' ')}`.trimEnd(),
  ];
}
