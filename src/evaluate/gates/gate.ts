/**
 * A gate: one way in which a model can look better without being it, measured on what both models answered to the same cases.
 * Each is a pure function in a file of its own. It gives the number, the limit, what follows, and the answers to look at, so
 * that nobody has to take its word.
 */
import { z } from 'zod';
import type { Answer } from '../answer.ts';
import { shownAnswer } from '../answer.ts';
import { verdicts } from '../verdict.ts';

export const gateSchema = z.strictObject({
  name: z.string(),
  /** fail: the candidate stops. inconclusive: a person looks. unmeasured: it could not tell, which holds nothing up. */
  verdict: z.enum(verdicts),
  /** What it measured of each; null: nothing could be. */
  baseline: z.number().nullable(),
  candidate: z.number().nullable(),
  limit: z.number(),
  /** A sentence with the figures. */
  reason: z.string(),
  /** A few of the candidate's answers that show it. */
  look: z.array(z.strictObject({ task: z.string(), attempt: z.int(), answer: z.string() })),
});
export type Gate = Readonly<z.infer<typeof gateSchema>>;

/** One attempt that was played to an end which says something about the model. */
export type GatedAttempt = { readonly attempt: number; readonly solved: boolean; readonly answer: Answer };
/** A case that both models played. */
export type GatedCase = {
  readonly id: string;
  readonly type: string;
  readonly baseline: readonly GatedAttempt[];
  readonly candidate: readonly GatedAttempt[];
};

/** With fewer, a gate has nothing to say. */
export const fewestCases = 10;

const shown = 3;

export const lookAt = (
  cases: readonly GatedCase[],
  shows: (attempt: GatedAttempt, of: GatedCase) => boolean,
): Gate['look'] => {
  const found: Gate['look'] = [];
  for (const one of cases) {
    const attempt = one.candidate.find((played) => shows(played, one));
    if (attempt !== undefined)
      found.push({ task: one.id, attempt: attempt.attempt, answer: shownAnswer(attempt.answer) });
    if (found.length === shown) break;
  }
  return found;
};

export const unmeasured = (name: string, limit: number, reason: string): Gate => ({
  ...{ name, verdict: 'unmeasured', baseline: null, candidate: null, limit, reason, look: [] },
});

export const percent = (share: number): string => `${(share * 100).toFixed(1)}%`;
