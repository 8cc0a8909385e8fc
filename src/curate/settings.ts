/** What of its traffic an agent may learn from: the section `curate` of its file, and what of it is written down with a dataset. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { gateVersion, isOwnGate, type OwnGate } from './own-gate.ts';
import { needs } from './prerequisites.ts';

const share = z.number().min(0).max(1);
const someShare = z.number().gt(0).max(1);
const word = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/, 'lower-case letters, digits and _ . - only, at most 63');
const phrases = z.array(z.string().trim().min(2).max(200)).max(20_000);
const pattern = z
  .union([z.instanceof(RegExp), z.string().min(1).max(500)])
  .refine((given) => isPattern(given), 'a regular expression')
  // Without state: a global one would remember where it stopped.
  .transform((given) =>
    typeof given === 'string' ? new RegExp(given, 'iu') : new RegExp(given.source, given.flags.replace(/[gy]/g, '')),
  );

function isPattern(given: RegExp | string): boolean {
  try {
    return typeof given !== 'string' || new RegExp(given, 'iu') instanceof RegExp;
  } catch {
    return false;
  }
}

/** What is learned from, as against what must be there before anything is trained. */
const chosen = {
  on: z
    .enum(['production', 'simulation'])
    .default('production')
    .describe('Learn from what users did, or from what was simulated. Never both at once.'),
  minScore: share.default(0.7).describe('Total score that a conversation must reach.'),
  minMeasured: share
    .default(0.5)
    .describe(
      'Share of the reward’s weights that must have been measured: a score from one part in five proves little.',
    ),
  maxLatencySeconds: z
    .number()
    .positive()
    .default(30)
    .meta({ unit: 'seconds', description: 'What the slowest answer of a conversation may have taken.' }),
  kAnonymity: z.int().min(1).max(1000).default(5).meta({
    unit: 'people',
    description: 'How many different people must have asked something like it; 1 asks for nobody else.',
  }),
  nearDuplicate: someShare
    .default(0.9)
    .describe('Of conversations this alike, word for word, the best is kept; 1 leaves near-duplicates in.'),
  maxUserShare: someShare.default(0.05).describe('Share of the rows that may come from one user.'),
  maxKeyShare: someShare
    .default(1)
    .describe('Share of the rows that may come with one client key, where there is more than one.'),
  maxSourceShare: someShare
    .default(1)
    .describe(
      'Share of the rows that may have come in one way, through the gateway or from one import by its name, where there is more than one.',
    ),
  maxTenantShare: someShare
    .default(1)
    .describe('Share of the rows that may come from one tenant, where there is more than one.'),
  maxTypeShare: someShare
    .default(1)
    .describe('Share of the rows that may be of one task type, where there is more than one.'),
  holdOut: share
    .default(0)
    .describe(
      'Share of the users who are never learned from, so that there are people to measure on; once held out, for good.',
    ),
  minGap: someShare
    .default(0.2)
    .describe('How much better the better answer of a pair must be: in votes, or under the reward.'),
};
const walls = {
  region: word
    .optional()
    .describe('Region of the keys that are learned from; other regions only with consent to transfer.'),
  tenant: word
    .optional()
    .describe('Tenant of the keys that are learned from; other tenants only with consent to learning across them.'),
};

export const settings = z.strictObject({
  ...chosen,
  ...walls,
  confidential: z
    .strictObject({
      phrases: phrases.default([]).describe('Names of customers, projects, terms: found whatever their case.'),
      patterns: z.array(pattern).max(200).default([]).describe('Regular expressions, as text or as /…/.'),
      keep: z
        .enum(['out', 'inside'])
        .default('out')
        .describe(
          'out: such conversations are not learned from. inside: they are, and the dataset and what is trained on it do not leave.',
        ),
    })
    .prefault({}),
  canaries: phrases
    .default([])
    .describe(
      'Phrases planted in feedback or tool results that must never reach training data; looked for by `pawl curate check`.',
    ),
  require: needs.prefault({}),
  gates: z
    .array(z.custom<OwnGate>(isOwnGate, 'what gate(name, function) returns; names of letters, digits, space, _ and -'))
    .max(50)
    .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, 'two gates have the same name')
    .default([])
    .describe('Gates of your own: gate(name, conversation => null or why not).'),
});
export type Settings = Readonly<z.output<typeof settings>>;
export type SettingsInput = z.input<typeof settings>;

/** Written down with a dataset: lists of one's own only as a hash, because a list of customers is confidential itself. */
export const keptSettings = z.strictObject({
  ...chosen,
  ...walls,
  confidential: z.enum(['kept out', 'kept inside']).optional(),
  /** Of what is confidential and of the canaries. */
  lists: z.string().optional(),
  /** Names of gates of one's own, each with a hash of its text. */
  gates: z.string().optional(),
});
export type KeptSettings = Readonly<z.output<typeof keptSettings>>;

export function settingsKept({ confidential, canaries, require: _, gates, ...rest }: Settings): KeptSettings {
  const { phrases: names, patterns, keep } = confidential;
  const hasLists = names.length + patterns.length + canaries.length > 0;
  const lists = createHash('sha256').update(JSON.stringify([names, patterns.map(String), canaries]));
  return {
    ...rest,
    ...(names.length + patterns.length > 0 && {
      confidential: keep === 'out' ? ('kept out' as const) : ('kept inside' as const),
    }),
    ...(hasLists && { lists: lists.digest('hex').slice(0, 16) }),
    ...(gates.length > 0 && { gates: gates.map(gateVersion).join(' ') }),
  };
}
