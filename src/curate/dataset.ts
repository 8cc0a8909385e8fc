/**
 * The record of curating: an immutable, numbered selection of conversations to learn from, and of pairs of answers of which
 * one is better, with the reasons for all that was left out. Rows and pairs lie in a file beside the database (files.ts), an
 * artifact; `hash` is that file's SHA-256. Which conversations are in it, as a row or as a side of a pair, is in the table
 * dataset_rows, both ways, because whoever must be forgotten has to be found.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { funnelStep } from './funnel.ts';
import { keptSettings } from './settings.ts';

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
  settings: keptSettings,
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
  /** Holds what is confidential: it does not leave the deployment, and no model trained on it does. */
  internal: z.boolean(),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  /** Reference of the artifact that the file is; null: a file in the home of the Pawl that made it, or not kept at all. */
  artifact: z.string().nullable(),
  key: z.string(),
  /** Since when and why there is nothing to read in it any more; null: it is there. */
  gone: z
    .strictObject({
      at: z.number(),
      because: z.string(),
      /** The same without the rows that had to go. */
      replacedBy: z.string().nullable(),
    })
    .nullable(),
});
export type Dataset = Readonly<z.infer<typeof dataset>>;

/** All but what the store gives it: its number. */
export type DatasetDraft = Omit<Dataset, 'id' | 'version' | 'gone'>;

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

export const goneSentence = (id: string, { because, replacedBy }: NonNullable<Dataset['gone']>): string =>
  `Dataset ${id} is gone: ${because}.${replacedBy === null ? '' : ` ${replacedBy} is the same without what had to go.`}`;
