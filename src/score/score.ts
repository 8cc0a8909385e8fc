/**
 * The record of scoring: what one trajectory was worth under one version of the reward spec.
 *
 * part       one scorer's answer: a value in 0–1, or null when it could not tell. Not measured is never 0
 * total      weighted mean of the parts that were measured; null when none was, which is no score, not a bad one
 * measured   share of the weights that the total rests on, 0–1: a total of 1 from a third of the evidence says so
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

/**
 * A signal that is replaced gets a new id, so ids say everything; order of arrival says nothing. What was seen while a scorer
 * was broken is marked, so that it never equals what is there.
 */
export const evidenceOf = (turnIds: readonly string[], signalIds: readonly string[], broken = false): string =>
  createHash('sha256')
    .update(JSON.stringify([[...turnIds].sort(), [...signalIds].sort()]))
    .digest('hex') + (broken ? brokenMark : '');

const brokenMark = ' broken';
export const isBroken = ({ evidence }: Pick<Score, 'evidence'>): boolean => evidence.endsWith(brokenMark);
