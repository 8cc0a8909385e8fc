/**
 * A turn as the database takes it: its row as bytes (copy.ts), and the few facts that its conversation's row is the sum of. Made where
 * the turn is made, while its values are at hand; of a turn that comes from the disk, from its line.
 */
import type { Turn } from '../collect/turn.ts';
import { rowsOf } from './copy.ts';
import { dayOf } from './partitions.ts';
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

const fields = Object.keys(turnColumns) as TurnField[];
const row = rowsOf(['date', ...fields.map((field) => turnColumns[field].type)]);
const startedAt = 1 + fields.indexOf('startedAt');

/** The columns of a turn, `frame` as the JSON it is. */
export type TurnValues = { readonly [Field in Exclude<TurnField, 'frame'>]?: StoredTurn[Field] | null } & {
  readonly frame: string | null;
} & SummedTurn;

const values: unknown[] = [];
export function writeTurn(turn: TurnValues): WrittenTurn {
  // Cut to the millisecond, so that a page's cursor is exact.
  const began = Math.floor(turn.startedAt);
  values[0] = dayOf(began);
  for (let i = 0; i < fields.length; i++) values[i + 1] = turn[fields[i]!];
  values[startedAt] = began;
  const summed: SummedTurn = {
    id: turn.id,
    agent: turn.agent,
    trajectory: turn.trajectory,
    user: turn.user ?? null,
    origin: turn.origin,
    keys: turn.keys ?? [],
    startedAt: began,
    latencyMs: turn.latencyMs,
    status: turn.status,
    promptTokens: turn.promptTokens,
    completionTokens: turn.completionTokens,
    release: turn.release,
  };
  return { row: row(values), summed };
}

/** Of a line's entry. */
export function readTurnRow(json: Buffer): WrittenTurn {
  const { frame, ...turn } = JSON.parse(json.toString()) as Omit<TurnValues, 'frame'> & { readonly frame?: object };
  return writeTurn({ ...turn, frame: frame === undefined || frame === null ? null : JSON.stringify(frame) } as TurnValues);
}
