/**
 * What an agent or the whole installation says about personal data: what is its own and may stay, what else is personal here, and what
 * becomes of each kind. Plain data, so that it reaches the recorder's thread as it is.
 */
import { z } from 'zod';
import { boundedPattern } from './bounded-pattern.ts';
import { policies } from './placeholder.ts';
import { validators } from './validators.ts';

const kind = z
  .string()
  .regex(/^[a-z][a-z-]{1,29}$/, 'lower-case letters and dashes, at most 30')
  .describe('What it finds, as in [KIND_1].');

const recognizer = z.strictObject({
  kind,
  pattern: z
    .string()
    .min(1)
    .max(1000)
    .superRefine((source, context) => {
      const problem = boundedPattern(source);
      if (problem !== null) context.addIssue({ code: 'custom', message: problem });
    })
    .describe('Regular expression, without slashes; every repetition has an upper bound: \\d{4,12}.'),
  ignoreCase: z.boolean().default(false).describe('Whether capitals do not matter.'),
  context: z
    .array(z.string().min(2).max(60))
    .max(50)
    .default([])
    .describe('Words that raise the score by 0.35 where one stands within 60 characters.'),
  score: z.number().min(0).max(1).default(0.6).describe('How sure the pattern alone is; masked from 0.5.'),
  validator: z
    .enum(Object.keys(validators) as [keyof typeof validators, ...(keyof typeof validators)[]])
    .optional()
    .describe('A checksum that must be right.'),
});

const policy = z.enum(policies);

const shape = {
  allow: z
    .array(z.string().min(2).max(320))
    .max(1000)
    .default([])
    .describe(
      'Values that are no leak, such as the company’s own address and number; @example.com allows every address there.',
    ),
  recognizers: z.array(recognizer).max(100).default([]).describe('What else is personal or confidential here.'),
  policy: z
    .record(kind, policy)
    .default({})
    .describe(
      'What becomes of a kind: mask ([EMAIL_1]), hash (the same in every conversation), drop (nothing of the turn is kept), never ([KR_RRN], without telling two apart).',
    ),
};
const when = z.enum(['off', 'curate', 'record']);
const whenText =
  'When names, addresses, organisations, places and dates of birth are looked for: when a dataset is made, already before recording, or not at all.';

const ownFrom = z.number().min(0).max(1);
const ownFromText =
  'Names in an agent’s instructions and tools are its own where they stand in those of this share of its people, five of them at least; all others are somebody’s, and masked before anything becomes a dataset. 0 takes all for its own.';

const keepsNoResidents = ({ policy: of }: { readonly policy: Readonly<Record<string, string>> }): boolean =>
  !['kr-rrn', 'kr-frn'].some((one) => of[one] === 'mask' || of[one] === 'hash');
const residents = { path: ['policy'], message: 'kr-rrn and kr-frn may not be kept in any form: never or drop' };

/** Who finds entities when a dataset is made. Before recording it is always the rules: nothing there may wait for a model. */
const model = z
  .discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('rules') }),
    z.strictObject({
      kind: z.literal('onnx'),
      folder: z.string().min(1).max(4096),
      minScore: z.number().min(0).max(1).default(0.5),
    }),
    z.strictObject({
      kind: z.literal('presidio'),
      url: z.url({ protocol: /^https?$/ }),
      language: z
        .string()
        .regex(/^[a-z]{2}$/)
        .default('en'),
      minScore: z.number().min(0).max(1).default(0.4),
    }),
  ])
  .default({ kind: 'rules' })
  .describe(
    "Who finds entities when a dataset is made: { kind: 'rules' }, { kind: 'onnx', folder } for a token-classification model, or { kind: 'presidio', url } for an analyzer.",
  );

/** Of the installation, for all of its agents. */
export const piiSettings = z
  .strictObject({
    ...shape,
    entities: when.default('curate').describe(whenText),
    ownFrom: ownFrom.default(0.5).describe(ownFromText),
    model,
  })
  .refine(keepsNoResidents, residents);
/** Of an agent, beside those of the installation. */
export const agentPiiSettings = z
  .strictObject({
    ...shape,
    entities: when.optional().describe(`${whenText} Without it, as the installation says.`),
    ownFrom: ownFrom.optional().describe(`${ownFromText} Without it, as the installation says.`),
  })
  .refine(keepsNoResidents, residents);

export type PiiSettings = Readonly<z.output<typeof piiSettings>>;
type AgentPiiSettings = Readonly<z.output<typeof agentPiiSettings>>;
export type RecognizerSettings = PiiSettings['recognizers'][number];

/** What counts for an agent: what both say, and where they differ what the agent says. */
export const mergedPii = (common: PiiSettings, own: AgentPiiSettings): PiiSettings => ({
  ...common,
  allow: [...common.allow, ...own.allow],
  recognizers: [...common.recognizers, ...own.recognizers],
  policy: { ...common.policy, ...own.policy },
  entities: own.entities ?? common.entities,
  ownFrom: own.ownFrom ?? common.ownFrom,
});

/** An agent's, whole: of parsed settings they are merged with the installation's already. */
export const settledPii = (pii: AgentPiiSettings & Partial<Pick<PiiSettings, 'model'>>): PiiSettings => ({
  ...pii,
  entities: pii.entities ?? 'curate',
  ownFrom: pii.ownFrom ?? 0.5,
  model: pii.model ?? { kind: 'rules' },
});

/** The settings of every agent, by its name; `common` for those of which nobody knows. */
export type PiiOfAgents = { readonly common: PiiSettings; readonly agents: Readonly<Record<string, PiiSettings>> };

/** Of parsed settings, where an agent's are merged already; agents that say nothing of their own share one. */
export function piiOfAgents(config: {
  readonly pii: PiiSettings;
  readonly agents: readonly { readonly name: string; readonly pii: AgentPiiSettings }[];
}): PiiOfAgents {
  const common = JSON.stringify(config.pii);
  const merged = config.agents.map(({ name, pii }) => [name, { ...config.pii, ...pii } as PiiSettings] as const);
  return {
    common: config.pii,
    agents: Object.fromEntries(merged.filter(([, pii]) => JSON.stringify(pii) !== common)),
  };
}
