/**
 * The record of curating: an immutable, numbered selection of conversations to learn from, and of pairs of answers of which
 * one is better, with the reasons for all that was left out. Rows and pairs lie in a file beside the database (files.ts);
 * `hash` is that file's SHA-256. Which conversations are in it, as a row or as a side of a pair, is in the table
 * dataset_rows, both ways, because whoever must be forgotten has to be found.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { funnelStep } from './funnel.ts';

const share = z.number().min(0).max(1);

export const settings = z.strictObject({
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
  maxUserShare: z.number().gt(0).max(1).default(0.05).describe('Share of the rows that may come from one user.'),
  minGap: z
    .number()
    .gt(0)
    .max(1)
    .default(0.2)
    .describe('How much better the better answer of a pair must be: in votes, or under the reward.'),
});
export type Settings = Readonly<z.output<typeof settings>>;
export type SettingsInput = z.input<typeof settings>;

/** Agents give files their names. */
export const agentName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/, 'letters, digits and _ . - only, at most 63');

export const dataset = z.strictObject({
  id: z.string(),
  agent: agentName,
  /** 1, 2, 3, … for each agent. */
  version: z.int().positive(),
  createdAt: z.number(), // ms since epoch
  /** Conversations that started in [since, until) were looked at. */
  since: z.number(),
  until: z.number(),
  spec: z.string(),
  settings,
  seed: z.int(),
  funnel: z.array(funnelStep),
  /** Counted in pieces of evidence: a correction, an answer that users voted on, an answer that was explored. */
  pairs: z.strictObject({
    rows: z.int().nonnegative(),
    /** Pairs by where they come from. */
    sources: z.record(z.string(), z.int().positive()),
    funnel: z.array(funnelStep),
  }),
  /** Rows by task type; those whose agent did not say are under `unknown`. */
  taskTypes: z.record(z.string(), z.int().positive()),
  rows: z.int().nonnegative(),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  key: z.string(),
});
export type Dataset = Readonly<z.infer<typeof dataset>>;

/** All but what the store gives it: its number. */
export type DatasetDraft = Omit<Dataset, 'id' | 'version'>;

export const datasetId = (agent: string, version: number): string => `${agent}-v${version}`;

/** The same selection, seen the same way, is the same dataset, whenever it is made. */
export const datasetKey = (
  draft: Pick<Dataset, 'spec' | 'settings' | 'seed' | 'funnel' | 'pairs' | 'hash'>,
): string => {
  const { spec, settings: set, seed, funnel, pairs, hash } = draft;
  const entries = Object.entries(set).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256')
    .update(JSON.stringify([spec, entries, seed, funnel, pairs, hash]))
    .digest('hex');
};
