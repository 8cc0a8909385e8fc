/**
 * A turn as the database takes it: its row as bytes (copy.ts), and the few facts that its conversation's row is the sum of. Made where
 * the turn is made, while its values are at hand; of a turn that comes from the disk, from its line.
 */
import type { Turn } from '../collect/turn.ts';
import { rowsOf } from './copy.ts';
import { dayOf } from './partitions.ts';
import { storableText } from './storable.ts';
import { type StoredTurn, type TurnField, turnColumns, turnNames } from './turn-columns.ts';

export type SummedTurn = Pick<
  Turn,
  | 'id'
  | 'agent'
  | 'trajectory'
  | 'user'
  | 'origin'
  | 'keys'
  | 'startedAt'
  | 'latencyMs'
  | 'status'
  | 'promptTokens'
  | 'completionTokens'
  | 'release'
>;
export type WrittenTurn = { readonly row: Buffer; readonly summed: SummedTurn };

/** What rows are copied into. */
export const intoTurns = `pawl.turns (day, ${turnNames})`;

/** What is not a field of a Turn, except the frame. */
export type Inner = Pick<
  StoredTurn,
  'tokenIds' | 'logprobs' | 'tokenCounts' | 'taskType' | 'personal' | 'toolsCalled' | 'contentBytes' | 'parts'
>;
export const ofInner = Object.keys({
  ...{ tokenIds: 0, logprobs: 0, tokenCounts: 0, taskType: 0, personal: 0, toolsCalled: 0, contentBytes: 0, parts: 0 },
} satisfies Record<keyof Inner, 0>) as (keyof Inner)[];

/** A turn where it was made: its own fields, what was computed of it, and the frame as JSON. */
export type TurnValues = {
  readonly facts: Omit<Turn, 'request' | 'choices'>;
  readonly inner: Inner;
  readonly frame: string | null;
};

const fields = Object.keys(turnColumns) as TurnField[];
const row = rowsOf(['date', ...fields.map((field) => turnColumns[field].type)]);
const isInner = fields.map((field) => (ofInner as readonly string[]).includes(field));
const startedAt = 1 + fields.indexOf('startedAt');
const frameAt = 1 + fields.indexOf('frame');

/** As it is in the row, so that both name the same. */
const textOf = (value: string): string => (typeof value === 'string' ? storableText(value) : value);

const values: unknown[] = [];
export function writeTurn({ facts, inner, frame }: TurnValues): WrittenTurn {
  // Cut to the millisecond, so that a page's cursor is exact.
  const began = Math.floor(facts.startedAt);
  values[0] = dayOf(began);
  for (let i = 0; i < fields.length; i++)
    values[i + 1] = isInner[i] ? inner[fields[i] as keyof Inner] : facts[fields[i] as keyof typeof facts];
  values[startedAt] = began;
  values[frameAt] = frame;
  const summed: SummedTurn = {
    id: facts.id,
    agent: textOf(facts.agent),
    trajectory: textOf(facts.trajectory),
    user: facts.user ? textOf(facts.user) : (facts.user ?? null),
    origin: facts.origin,
    keys: facts.keys?.length ? facts.keys.map(textOf) : [],
    startedAt: began,
    latencyMs: facts.latencyMs + 0, // no -0
    status: facts.status,
    promptTokens: facts.promptTokens,
    completionTokens: facts.completionTokens,
    release: textOf(facts.release),
  };
  return { row: row(values), summed };
}

/** Of a line's entry. */
export function readTurnRow(json: Buffer): WrittenTurn {
  const { frame, ...turn } = JSON.parse(json.toString()) as Omit<StoredTurn, 'frame'> & {
    readonly frame?: object | null;
  };
  return writeTurn({ facts: turn, inner: turn, frame: frame ? JSON.stringify(frame) : null });
}
