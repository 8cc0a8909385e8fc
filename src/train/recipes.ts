/**
 * Recipes: which algorithms, in which order, on what. Each is a short program that makes stages for run.ts. A recipe that
 * needs examples or pairs and is given none plays for them with the starting weights, seeded, so that a resume makes the
 * same ones again.
 */
import type { Engine } from '../engine/engine.ts';
import { ConfigError } from '../errors.ts';
import type { AttemptSource, Group } from './attempt.ts';
import { type DpoSettings, dpo, type Pair, pairsFrom } from './dpo.ts';
import { type GrpoSettings, grpo } from './grpo.ts';
import { draw, mixSeed } from './order.ts';
import type { RecipeName } from './recipe-names.ts';
import { reload } from './reload.ts';
import type { Replay } from './replay.ts';
import { type RftSettings, rft } from './rft.ts';
import { type Example, type SftSettings, sft } from './sft.ts';
import type { Stage } from './stage.ts';

/** What there is to train on. */
export type Ingredients = {
  readonly engine: Engine;
  /** Checkpoint folder of the starting weights. */
  readonly base: string;
  readonly seed: number;
  readonly source?: AttemptSource;
  readonly examples?: readonly Example[];
  readonly pairs?: readonly Pair[];
  readonly replay?: Replay;
  readonly settings?: {
    readonly sft?: Partial<SftSettings>;
    readonly rft?: Partial<RftSettings>;
    readonly dpo?: Partial<DpoSettings>;
    readonly grpo?: Partial<GrpoSettings>;
    /** Tasks and attempts played where examples or pairs are missing. */
    readonly collect?: { readonly tasks: number; readonly attempts: number };
  };
};

export type Recipe = (from: Ingredients) => Promise<Stage[]>;

/** Learn what good examples did: format and tool syntax first. */
const imitate: Recipe = async (from) => [sft(await examplesOf(from), { ...withReplay(from), ...from.settings?.sft })];

/** Learn one's own best attempts, and again. */
const select: Recipe = async (from) => [rft(sourceOf(from, 'rft'), { ...withReplay(from), ...from.settings?.rft })];

/** Learn which of two answers is better. */
const prefer: Recipe = async (from) => [dpo(await pairsOf(from), { ...withReplay(from), ...from.settings?.dpo })];

/** Practise, and do more of what did better than its peers. */
const practise: Recipe = async (from) => [
  grpo(sourceOf(from, 'grpo'), { ...withReplay(from), ...from.settings?.grpo }),
];

export const recipes = {
  sft: imitate,
  rft: select,
  dpo: prefer,
  grpo: practise,
  /** Form first, then practice: the usual way for a model that cannot do the task's format yet. */
  'sft-grpo': async (from) => [...(await imitate(from)), ...(await practise(from))],
  /** The safe first stage, then practice. */
  'rft-grpo': async (from) => [...(await select(from)), ...(await practise(from))],
  /** Form first, then preferences: for data without an environment. */
  'sft-dpo': async (from) => [...(await imitate(from)), ...(await prefer(from))],
} as const satisfies Record<RecipeName, Recipe>;

export function isRecipe(name: string): name is RecipeName {
  return Object.hasOwn(recipes, name);
}

function sourceOf({ source }: Ingredients, recipe: string): AttemptSource {
  if (!source)
    throw new ConfigError(`The recipe ${recipe} practises, and there is no environment; give one, or use sft or dpo.`);
  return source;
}

const withReplay = ({ replay }: Ingredients) => (replay ? { replay } : {});

async function examplesOf(from: Ingredients): Promise<readonly Example[]> {
  if (from.examples) return from.examples;
  return (await playBase(from, 'sft')).flat().map((a) => ({
    id: a.id,
    taskType: a.taskType,
    quality: a.reward,
    turns: a.turns.map(({ reward, ...turn }) => ({ ...turn, ...(reward === undefined ? {} : { worth: reward }) })),
  }));
}

async function pairsOf(from: Ingredients): Promise<readonly Pair[]> {
  return from.pairs ?? pairsFrom(await playBase(from, 'dpo'));
}

/** Groups of attempts by the starting weights. */
async function playBase(from: Ingredients, recipe: string): Promise<readonly Group[]> {
  const source = sourceOf(from, recipe);
  const { tasks, attempts } = from.settings?.collect ?? { tasks: 256, attempts: 8 };
  const model = 'collecting';
  await reload(from.engine, model, from.base);
  try {
    const seed = mixSeed(from.seed, 0xc011ec7);
    return await source.play({ engine: from.engine, model, tasks: draw(source.tasks, 0, tasks, seed), attempts, seed });
  } finally {
    await from.engine.unload(model);
  }
}
