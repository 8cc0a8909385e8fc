/** Who judges, and what that may cost. An agent may name another judge in its file, and a scorer another one still. */
import { z } from 'zod';
import type { TokenPrice } from '../collect/price.ts';

const name = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/, 'the name of an upstream');
const model = z.string().min(1).max(256);

const choice = {
  upstream: name.describe('Name of the upstream that is asked.'),
  model: model.describe('Model that is asked, as the upstream calls it.'),
  embeddingModel: model
    .optional()
    .describe('Model of the same upstream that gives embeddings; answerRelevance() needs one.'),
};

export const judgeSettings = z.strictObject({
  ...choice,
  concurrency: z
    .int()
    .min(1)
    .max(1000)
    .default(8)
    .meta({ unit: 'calls', description: 'Calls in flight at once, of one scoring run.' }),
  timeoutSeconds: z
    .number()
    .positive()
    .max(600)
    .default(60)
    .meta({ unit: 'seconds', description: 'A call without an answer after this long is tried again.' }),
  attempts: z.int().min(1).max(10).default(4).meta({
    unit: 'calls',
    description: 'Calls for one answer, when the judge is away, busy or says what is no verdict.',
  }),
  maxTokens: z
    .int()
    .min(64)
    .max(100_000)
    .default(2000)
    .meta({ unit: 'tokens', description: 'Longest answer of the judge; more for one that thinks aloud.' }),
  maxCharacters: z
    .int()
    .min(1000)
    .max(4_000_000)
    .default(60_000)
    .meta({ unit: 'characters', description: 'Of a conversation in one call; what is longer is cut in the middle.' }),
  budget: z
    .strictObject({
      run: z.number().positive().optional().describe('Money that one scoring run may spend on judging.'),
      day: z.number().positive().optional().describe('Money that all scoring of a day (UTC) may spend on judging.'),
    })
    .prefault({}),
});
export type JudgeSettings = Readonly<z.output<typeof judgeSettings>>;

export const agentJudgeSettings = z.strictObject({
  upstream: choice.upstream.optional(),
  model: choice.model.optional(),
  embeddingModel: choice.embeddingModel,
});

/** A server that can be asked. */
export type JudgeUpstream = {
  readonly baseUrl: string;
  readonly key?: string | undefined;
  readonly price?: TokenPrice | undefined;
  /** Part of the deployment, so that what must not leave may be shown to it. */
  readonly inside?: boolean | undefined;
};

/** The judge of one agent, as installation and agent together say, with the upstreams that it or a scorer names. */
export type Judging = JudgeSettings & {
  readonly upstreams: Readonly<Record<string, JudgeUpstream>>;
  /** Whether one of these is what the agent calls confidential. */
  readonly isConfidential?: ((words: readonly string[]) => boolean) | undefined;
};

export const judgingOf = (
  settings: JudgeSettings | undefined,
  own: z.output<typeof agentJudgeSettings> | undefined,
  upstreams: Readonly<Record<string, JudgeUpstream>>,
  isConfidential?: Judging['isConfidential'],
): Judging | undefined =>
  settings && {
    ...settings,
    upstream: own?.upstream ?? settings.upstream,
    model: own?.model ?? settings.model,
    embeddingModel: own?.embeddingModel ?? settings.embeddingModel,
    ...{ upstreams, isConfidential },
  };
