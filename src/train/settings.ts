/**
 * How an agent's model is trained: the settings of its file. A run's own settings (plan.ts) are made from these and from
 * what there is to learn from.
 */
import { z } from 'zod';
import type { Message } from '../simulate/message.ts';
import { recipeNames } from './recipe-names.ts';

/** A conversation that the model must not forget. */
export type Kept = { readonly messages: readonly Message[]; readonly taskType?: string; readonly quality?: number };
/** Conversations to mix in, made from the run's seed, so that whoever resumes it gets the same. */
export type MakeKept = (seed: number) => readonly Kept[];

export const trainSettings = z.strictObject({
  base: z
    .string()
    .min(1)
    .max(4096)
    .optional()
    .describe('Checkpoint folder that training starts from while no release of the agent has one of its own.'),
  recipe: z
    .enum(['auto', ...recipeNames])
    .default('auto')
    .describe('How; auto decides by what there is to learn from, and says why.'),
  tasks: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(2000)
    .meta({ unit: 'tasks', description: 'Tasks to practise on that are made from the seed.' }),
  steps: z.int().min(1).max(1_000_000).optional().meta({ unit: 'steps', description: 'Steps of practice (GRPO).' }),
  tasksPerStep: z.int().min(1).max(4096).optional().meta({ unit: 'tasks', description: 'Tasks of one step of GRPO.' }),
  attempts: z.int().min(2).max(256).optional().meta({ unit: 'attempts', description: 'Attempts at each task.' }),
  learningRate: z.number().positive().max(1).optional().describe('Peak of the learning rate.'),
  kl: z.number().min(0).max(10).optional().describe('GRPO: pull towards the reference.'),
  credit: z.enum(['attempt', 'turn']).optional().describe('GRPO: what earns an advantage.'),
  replay: z
    .strictObject({
      share: z.number().gt(0).lt(1).default(0.1).describe('Their share of each batch.'),
      examples: z
        .union([z.string().min(1).max(4096), z.custom<MakeKept>((given) => typeof given === 'function')])
        .describe('A JSONL file of conversations, or a function of the seed that makes them.'),
    })
    .optional()
    .describe('What the model must not forget.'),
});
export type TrainSettings = Readonly<z.output<typeof trainSettings>>;
