/**
 * An agent is a file: what is good (reward), what may be learned from (curate), how (train), what a candidate is judged by
 * (evaluate), how it gets to the users (deploy), when all of that happens (loop), and, where there is one, the environment
 * in which a model can practise. Every stage's settings are the stage's own schema; this file only puts them together.
 */
import { z } from 'zod';
import { agentPiiSettings } from './collect/redact/settings.ts';
import { settings as curateSettings } from './curate/settings.ts';
import { rolloutSettings } from './deploy/rollout.ts';
import type { Embedding } from './evaluate/embed.ts';
import { evaluateSettings } from './evaluate/settings.ts';
import { exploreSettings } from './gateway/explore-settings.ts';
import { loopSettings } from './loop/settings.ts';
import { reviewSettings } from './review/settings.ts';
import { defaultReward } from './score/default-reward.ts';
import { agentJudgeSettings, type Judging } from './score/judge-settings.ts';
import { scoreSettings } from './score/settings.ts';
import type { RewardSpec } from './score/weighted.ts';
import type { Environment } from './simulate/environment.ts';
import { trainSettings } from './train/settings.ts';

// Whatever its tasks and its database are: what plays an environment only hands them from one of its functions to another.
// biome-ignore lint/suspicious/noExplicitAny: a function that takes Data is no function that takes unknown
type AnyEnvironment = Environment<any, any>;

const isReward = (given: unknown): boolean => {
  const { version, parts } = (given ?? {}) as Partial<RewardSpec>;
  return typeof version === 'string' && Array.isArray(parts);
};
const isEnvironment = (given: unknown): boolean => {
  const { gradeEnd, tools, types } = (given ?? {}) as Partial<AnyEnvironment>;
  return typeof gradeEnd === 'function' && Array.isArray(tools) && typeof types === 'object';
};

export const agentSchema = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/, 'lower-case letters, digits and _ . - only, at most 63')
      .describe('What clients send as the model, and what everything of this agent is kept under.'),
    reward: z
      .custom<RewardSpec>(isReward, 'what weighted({ … }) returns')
      .default(defaultReward)
      .describe(
        'What a good conversation is: scorers and their weights. Without it: judge, faithfulness, context recall, feedback and a penalty for latency (docs/score.md).',
      ),
    pii: agentPiiSettings.prefault({}),
    judge: agentJudgeSettings
      .optional()
      .describe('Another judge for this agent’s conversations than the installation’s.'),
    score: scoreSettings.prefault({}),
    curate: curateSettings.prefault({}),
    train: trainSettings.prefault({}),
    evaluate: evaluateSettings.prefault({}),
    deploy: rolloutSettings.prefault({}),
    review: reviewSettings.prefault({}),
    loop: loopSettings.prefault({}),
    explore: exploreSettings.prefault({}),
    environment: z
      .custom<AnyEnvironment>(
        isEnvironment,
        'an object with name, types, tools, user and graders, or what agentProcess or agentEndpoint returns',
      )
      .optional()
      .describe(
        'Where a model can practise: tasks, tools, simulated users and graders; or your own agent, by agentProcess or agentEndpoint.',
      ),
  })
  .refine(({ loop, train }) => loop.budget.money === undefined || train.moneyPerHour !== undefined, {
    path: ['loop', 'budget', 'money'],
    message: 'needs a price: set train.moneyPerHour too',
  });

export type Agent = Readonly<z.output<typeof agentSchema>> & {
  /** Who is asked by scorers that ask: what the installation and `judge` above say together (config.ts). */
  readonly judging?: Judging | undefined;
  /** Who is asked for embeddings while it is evaluated: `evaluate.embeddings` with its server (config.ts). */
  readonly embedding?: Embedding | undefined;
};
export type AgentInput = z.input<typeof agentSchema>;
