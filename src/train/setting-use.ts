/**
 * Which algorithm reads which setting of a run: the one table. A setting that none of a recipe's algorithms reads is refused
 * before anything begins, because a person who set it believes that it did something. Settings that are not in the table are
 * read by every run (what to practise in, how much to hold back, an adapter's rank, what an hour costs).
 */
import { ConfigError } from '../errors.ts';
import { type RecipeName, recipeNames } from './recipe-names.ts';
import type { Stage } from './stage.ts';

type Algorithm = Stage['algorithm'];

const readBy = {
  examples: ['sft'],
  dataset: ['sft', 'dpo'],
  pairs: ['dpo'],
  learningRate: ['sft', 'rft', 'dpo', 'grpo'],
  attempts: ['rft', 'grpo'],
  steps: ['grpo'],
  tasksPerStep: ['grpo'],
  kl: ['grpo'],
  credit: ['sft', 'rft', 'grpo'],
  lag: ['grpo'],
} as const satisfies Record<string, readonly Algorithm[]>;

export type ReadSetting = keyof typeof readBy;
export const readSettings = Object.keys(readBy) as ReadSetting[];
/** What there is to learn from, as against how. */
export const materials: readonly ReadSetting[] = ['examples', 'dataset', 'pairs'];

/** A recipe is called after its algorithms, in their order. */
export const algorithmsOf = (recipe: RecipeName): Algorithm[] => recipe.split('-') as Algorithm[];

export const isRead = (setting: ReadSetting, recipe: RecipeName): boolean =>
  algorithmsOf(recipe).some((algorithm) => (readBy[setting] as readonly Algorithm[]).includes(algorithm));

/** Settings that are given and that the recipe would ignore. */
export const ignoredBy = (recipe: RecipeName, settings: { readonly [S in ReadSetting]?: unknown }): ReadSetting[] =>
  readSettings.filter((setting) => settings[setting] !== undefined && !isRead(setting, recipe));

export function refuseIgnored(recipe: RecipeName, settings: { readonly [S in ReadSetting]?: unknown }): void {
  const ignored = ignoredBy(recipe, settings);
  if (ignored.length === 0) return;
  const sentences = ignored.map((setting) => {
    const others = recipeNames.filter((one) => isRead(setting, one));
    return `${setting} is for the recipe${others.length === 1 ? '' : 's'} ${others.join(', ')}; ${recipe} does not read it.`;
  });
  throw new ConfigError(`${sentences.join('\n')}\nLeave it out, or choose a recipe that reads it.`);
}
