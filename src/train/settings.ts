/**
 * How an agent's model is trained: the settings of its file. A run's own settings (plan.ts) are made from these and from
 * what there is to learn from.
 */
import { z } from 'zod';
import { conditionNames } from '../curate/prerequisites.ts';
import type { Message } from '../simulate/message.ts';
import { recipeNames } from './recipe-names.ts';

/** A conversation that the model must not forget. */
export type Kept = { readonly messages: readonly Message[]; readonly taskType?: string; readonly quality?: number };
/** Conversations to mix in, made from the run's seed, so that whoever resumes it gets the same. */
export type MakeKept = (seed: number) => readonly Kept[];

export const trainSettings = z
  .strictObject({
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
    tasksPerStep: z
      .int()
      .min(1)
      .max(4096)
      .optional()
      .meta({ unit: 'tasks', description: 'Tasks of one step of GRPO.' }),
    attempts: z.int().min(2).max(256).optional().meta({ unit: 'attempts', description: 'Attempts at each task.' }),
    learningRate: z.number().positive().max(1).optional().describe('Peak of the learning rate.'),
    kl: z.number().min(0).max(10).optional().describe('GRPO: pull towards the reference.'),
    credit: z
      .enum(['attempt', 'turn'])
      .optional()
      .describe(
        'What earns credit: the whole, or each turn; in SFT and RFT a turn then weighs what it was worth, in GRPO it has an advantage of its own.',
      ),
    lag: z.int().min(0).max(1).optional().meta({
      unit: 'steps',
      description:
        'GRPO: 1 plays the next batch while this one is learned, so that an engine elsewhere is never idle; 0 plays with the newest weights.',
    }),
    validationTasks: z
      .int()
      .min(0)
      .max(10_000)
      .default(60)
      .meta({ unit: 'tasks', description: 'Held-out tasks that a run measures itself on as it goes; 0: none.' }),
    lora: z
      .strictObject({
        rank: z.int().min(1).max(1024).describe('Rank of the adapter: how much it can learn.'),
        alpha: z.number().positive().max(65_536).optional().describe('Its scale; without it twice the rank.'),
      })
      .optional()
      .describe('Trains a low-rank adapter instead of all weights, which needs a fraction of the memory.'),
    budget: z
      .strictObject({
        hours: z.number().positive().max(100_000).optional().meta({ unit: 'hours', description: 'Time of one run.' }),
        tokens: z
          .int()
          .positive()
          .optional()
          .meta({ unit: 'tokens', description: 'Tokens sampled and trained in one run.' }),
        money: z.number().positive().optional().describe('What one run may cost, by `moneyPerHour`.'),
      })
      .prefault({}),
    without: z
      .array(z.enum(conditionNames))
      .default([])
      .describe('Conditions of `pawl curate check` that training goes on without; the audit log has each use.'),
    moneyPerHour: z
      .number()
      .min(0)
      .max(1_000_000)
      .optional()
      .describe('What an hour of the machine that trains costs, in your currency.'),
    replay: z
      .strictObject({
        share: z.number().gt(0).lt(1).default(0.1).describe('Their share of each batch.'),
        examples: z
          .union([z.string().min(1).max(4096), z.custom<MakeKept>((given) => typeof given === 'function')])
          .describe('A JSONL file of conversations, or a function of the seed that makes them.'),
      })
      .optional()
      .describe('What the model must not forget.'),
  })
  .superRefine(({ budget, moneyPerHour }, context) => {
    if (budget.money !== undefined && moneyPerHour === undefined)
      context.addIssue({
        code: 'custom',
        path: ['budget', 'money'],
        message: `${budget.money} needs a price: set moneyPerHour too`,
      });
  });

export type TrainSettings = Readonly<z.output<typeof trainSettings>>;
