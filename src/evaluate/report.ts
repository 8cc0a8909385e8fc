/**
 * The record of one evaluation: a candidate against the baseline on the same tasks with the same seeds, task by task, and
 * what follows. Its id says what was asked (models, suite, attempts, seed, rules), so asking again finds the same report.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { gateSchema } from './gates/gate.ts';
import { verdicts } from './verdict.ts';

const comparison = z.strictObject({
  n: z.int(),
  baseline: z.number(),
  candidate: z.number(),
  difference: z.number(),
  interval: z.tuple([z.number(), z.number()]).readonly(),
  p: z.number(),
  test: z.enum(['mcnemar', 'sign-flip']),
  better: z.int(),
  worse: z.int(),
  detectable: z.number().nullable(),
  /** p, corrected for how many types are looked at. */
  holm: z.number().optional(),
});

export const reportSchema = z.strictObject({
  id: z.string(),
  agent: z.string(),
  /** Names of the releases or checkpoints compared. */
  baseline: z.string(),
  candidate: z.string(),
  suite: z.strictObject({
    name: z.string(),
    hash: z.string(),
    tasks: z.int(),
    /** Reference of its file; reports from before there were artifacts have none. */
    artifact: z.string().optional(),
  }),
  attempts: z.int(),
  temperature: z.number(),
  seed: z.int(),
  /** null: no task was measured for both. */
  overall: comparison.nullable(),
  types: z.record(z.string(), comparison),
  tasks: z.array(
    z.strictObject({
      id: z.string(),
      type: z.string(),
      /** Share of attempts that solved it; null: it could not be played (a tool or a server failed, not the model). */
      baseline: z.number().nullable(),
      candidate: z.number().nullable(),
      /** Why attempts did not solve it, or could not be played: a few, each once. */
      reasons: z.strictObject({ baseline: z.array(z.string()), candidate: z.array(z.string()) }).optional(),
    }),
  ),
  /** What graders or the reward paid, compared by a paired t-test; absent where nothing was paid. */
  reward: z
    .strictObject({
      n: z.int(),
      baseline: z.number(),
      candidate: z.number(),
      difference: z.number(),
      interval: z.tuple([z.number(), z.number()]).readonly(),
      p: z.number(),
    })
    .optional(),
  /** How likely k attempts at a case all solve it; absent with one attempt. */
  passK: z
    .array(
      z.strictObject({
        k: z.int(),
        baseline: z.number(),
        candidate: z.number(),
        interval: z.tuple([z.number(), z.number()]).readonly(),
      }),
    )
    .optional(),
  /** The suite of what must not be forgotten, where there is one. */
  broad: z.strictObject({ suite: z.string(), hash: z.string(), comparison }).optional(),
  /** KL(candidate ‖ baseline), nats per token the candidate wrote; null where tokens are not known. */
  drift: z.number().nullable(),
  /** The same from what the candidate's line began with, where that is neither of the two. */
  base: z.strictObject({ release: z.string(), drift: z.number().nullable() }).optional(),
  /** What was looked at beyond solved cases; reports from before there were gates have none. */
  gates: z.array(gateSchema).optional(),
  verdict: z.enum(verdicts),
  reasons: z.array(z.string()),
  seconds: z.number(),
  createdAt: z.number(), // ms since epoch
});
export type Report = Readonly<z.infer<typeof reportSchema>>;

type Asked = Pick<Report, 'agent' | 'baseline' | 'candidate' | 'suite' | 'attempts' | 'temperature' | 'seed'>;

/** `rules`: by what it is judged; other rules, other report. */
export function reportId(
  { agent, baseline, candidate, suite, attempts, temperature, seed }: Asked,
  rules: Readonly<Record<string, unknown>>,
): string {
  const asked = JSON.stringify([agent, baseline, candidate, suite.hash, attempts, temperature, seed, rules]);
  return `report-${createHash('sha256').update(asked).digest('hex').slice(0, 16)}`;
}
