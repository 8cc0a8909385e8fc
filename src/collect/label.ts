/**
 * A label: what a person who looked at a conversation, or at one turn of it, says it was worth, 0–1, in total and perhaps part by
 * part of the reward. It is a signal of kind `label`: the total is named `score`, a part `part.NAME`, which no total can be called.
 * One value per reviewer, target and name; the newest stands, and reviewers are kept apart. Pure: a parsed body in, signals out.
 */
import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { clockErrorMs, earliestTime } from '../store/times.ts';
import type { Signal } from './signal.ts';
import { trajectoryId } from './trajectory.ts';
import { uuidOf } from './uuid.ts';

const unit = z.number().min(0).max(1);
const text = (max: number) =>
  z
    .string()
    .max(max)
    .refine((typed) => !typed.includes('\0'), 'must not hold the character NUL');
const partName = z.string().regex(/^[a-z][a-z0-9_-]{0,63}$/, 'lower-case letters, digits, _ and - only, at most 64');

/** What a label says, wherever it stands. */
export const labelFields = {
  score: unit,
  parts: z
    .record(partName, unit)
    .refine((parts) => Object.keys(parts).length <= 32, 'at most 32 parts')
    .optional(),
  reviewer: text(256).min(1).optional(),
  comment: text(10_000).optional(),
  correction: text(100_000).optional(),
};

export const labelBody = z
  .strictObject({
    trajectory: trajectoryId.optional(),
    turn: z.uuid().optional(),
    ...labelFields,
    at: z.union([z.iso.datetime({ offset: true }), z.int()]).optional(),
  })
  .refine(({ trajectory, turn }) => (trajectory === undefined) !== (turn === undefined), {
    message: 'give one of `trajectory` and `turn`',
  });
export type LabelBody = Readonly<z.output<typeof labelBody>>;

export const totalName = 'score';
export const partSignal = (part: string): string => `part.${part}`;

/** Throws a sentence when it is dated where no clock's error could have put it. */
export function labelTime(at: LabelBody['at'], now: number): number {
  if (at === undefined) return now;
  const time = typeof at === 'number' ? at : Date.parse(at);
  if (time >= earliestTime && time <= now + clockErrorMs) return time;
  throw new Error(`at: ${at} is not between 2000 and a day from now (ISO 8601, or milliseconds since 1970)`);
}

export type LabelContext = {
  readonly agent: string;
  readonly at: number;
  readonly receivedAt: number;
  /** Ids tell nothing of who said what to those who do not have it. */
  readonly secret: string;
};

/** Of the same label of the same time come the same signals: sent twice it changes nothing. */
export function labelSignals(body: Omit<LabelBody, 'at'>, about: LabelContext): Signal[] {
  const { agent, at, receivedAt, secret } = about;
  const target =
    body.turn === undefined
      ? { kind: 'trajectory' as const, id: body.trajectory! }
      : { kind: 'turn' as const, id: body.turn };
  const reviewer = body.reviewer ?? null;
  const said: [name: string, value: number][] = [
    [totalName, body.score],
    ...Object.entries(body.parts ?? {}).map(([part, value]): [string, number] => [partSignal(part), value]),
  ];
  return said.map(([name, value], k): Signal => {
    const identity = JSON.stringify(['label', agent, target.kind, target.id, reviewer, name]);
    const words = k === 0 ? [body.comment ?? null, body.correction ?? null] : [null, null];
    const digest = createHmac('sha256', secret)
      .update(JSON.stringify([identity, value, at, ...words]))
      .digest('hex');
    return {
      id: uuidOf(at, digest),
      ...{ identity, agent, target, kind: 'label', name, value, unit: null, user: reviewer, key: null },
      ...{ comment: words[0]!, correction: words[1]!, at, receivedAt },
    };
  });
}
