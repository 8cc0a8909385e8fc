/**
 * The record of scoring: what one trajectory was worth under one version of the reward spec.
 *
 * part       one scorer's answer: a value in 0–1, or null when it could not tell. Not measured is never 0
 * total      what the parts that were measured make together (weighted.ts); null when none was, or when a scorer failed, which
 *            is no score, not a bad one
 * measured   share of the weights that spoke, 0–1: a total of 1 from a third of the evidence says so
 * failed     the scorer broke or did not answer in time: the next run asks it again
 * evidence   hash of the turns and signals it was computed from; other evidence, other score
 *
 * A score is never edited. The same evidence and spec give the same score; when evidence arrives later, it is computed
 * again and takes the older one's place.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';

const unit = z.number().min(0).max(1);

export const partScore = z.strictObject({
  value: unit.nullable(),
  weight: z.number().positive(),
  reason: z.string(),
  /** It takes its weight away where the value is below 1, and never adds to the total. */
  penalty: z.literal(true).optional(),
  failed: z.literal(true).optional(),
});
export type PartScore = Readonly<z.infer<typeof partScore>>;

export const turnScore = z.strictObject({
  turn: z.string(),
  /** Weighted mean of the parts that say something about this turn. */
  value: unit.nullable(),
  parts: z.record(z.string(), unit),
});
export type TurnScore = Readonly<z.infer<typeof turnScore>>;

export const score = z.strictObject({
  agent: z.string(),
  trajectory: z.string(),
  /** Day of the trajectory's partition: with the id it names one conversation. */
  day: z.iso.date(),
  spec: z.string(),
  evidence: z.string(),
  total: unit.nullable(),
  measured: unit,
  parts: z.record(z.string(), partScore),
  turns: z.array(turnScore),
  at: z.number(), // ms since epoch
});
export type Score = Readonly<z.infer<typeof score>>;

export type Evidence = {
  readonly turnIds: readonly string[];
  readonly signalIds: readonly string[];
  /** What it was compared with, by name. */
  readonly norms?: ReadonlyMap<string, number> | undefined;
  readonly broken?: boolean;
};

/**
 * A signal that is replaced gets a new id, so ids say everything; order of arrival says nothing. What was seen while a scorer
 * was broken is marked, so that it never equals what is there.
 */
export function evidenceOf({ turnIds, signalIds, norms, broken = false }: Evidence): string {
  const seen: unknown[] = [[...turnIds].sort(), [...signalIds].sort()];
  if (norms !== undefined && norms.size > 0) seen.push([...norms].sort(([a], [b]) => (a < b ? -1 : 1)));
  return createHash('sha256').update(JSON.stringify(seen)).digest('hex') + (broken ? brokenMark : '');
}

const brokenMark = ' broken';
export const isBroken = ({ evidence }: Pick<Score, 'evidence'>): boolean => evidence.endsWith(brokenMark);
