/**
 * The record of what can answer traffic: a model at an upstream, with the sampling settings, the prompt and the thinking budget it is
 * served with, and where it came from. A release never changes; its id is the hash of its content, so making the same one again
 * gives the same release. Turns carry its name, which is unique for an agent.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';

export const releaseSchema = z.strictObject({
  id: z.string(),
  agent: z.string().min(1),
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/, 'letters, digits and _ . : - only, at most 128'),
  /** Name of the upstream that serves it. */
  upstream: z.string().min(1),
  /** The model's name there. */
  model: z.string().min(1).max(256),
  /** Its weights: a reference, or a folder of the machine it was made on; null for a model whose weights are somebody else's. */
  checkpoint: z.string().nullable(),
  /** Fields of a request that are set where the caller does not set them, e.g. { temperature: 0.7 }. */
  sampling: z
    .record(z.string().regex(/^[a-z][a-z0-9_]{0,63}$/), z.unknown())
    .refine((fields) => JSON.stringify(fields).length <= 4096, 'at most 4096 characters of JSON'),
  /** Instructions of its own: in place of the caller's, or before them. */
  prompt: z.strictObject({ text: z.string().min(1).max(100_000), rule: z.enum(['replace', 'before']) }).nullable(),
  /** Most tokens of thinking before an answer; 0: none. null: as the server does by itself. */
  thinking: z.int().min(0).max(1_000_000).nullable(),
  /** Id of the release it was made from; null for a first one. */
  parent: z.string().nullable(),
  run: z.string().nullable(),
  report: z.string().nullable(),
  dataset: z.string().nullable(),
  /** Its weights learned from what is confidential: no upstream outside the deployment may have them. */
  internal: z.boolean(),
  createdAt: z.number(), // ms since epoch
});
export type Release = Readonly<z.infer<typeof releaseSchema>>;

/** How a server is told of a thinking budget; config.ts names them, gateway/released-body.ts knows the fields. */
export const thinkingDialects = ['vllm', 'template', 'openrouter', 'anthropic', 'nim'] as const;
export type ThinkingDialect = (typeof thinkingDialects)[number];

export type NewRelease = Pick<Release, 'agent' | 'name' | 'upstream' | 'model'> &
  Partial<
    Pick<
      Release,
      'checkpoint' | 'sampling' | 'prompt' | 'thinking' | 'parent' | 'run' | 'report' | 'dataset' | 'internal'
    >
  >;

export function makeRelease(given: NewRelease, now: number): Release {
  const { agent, name, upstream, model } = given;
  const { checkpoint = null, sampling = {}, run = null, report = null, dataset = null, internal = false } = given;
  const { prompt = null, thinking = null, parent = null } = given;
  // What most releases do not have stands at the end, so that ids stay what they were before there was such a thing.
  const content = JSON.stringify([
    ...[agent, name, upstream, model, checkpoint, prompt, sorted(sampling)],
    ...(thinking === null ? [] : [{ thinking }]),
  ]);
  const id = `release-${createHash('sha256').update(content).digest('hex').slice(0, 16)}`;
  return releaseSchema.parse({
    id,
    ...{ agent, name, upstream, model, checkpoint, sampling, prompt, thinking, parent, run, report, dataset, internal },
    createdAt: now,
  });
}

const sorted = (fields: Readonly<Record<string, unknown>>) =>
  Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
