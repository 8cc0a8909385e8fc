/**
 * A turn's columns, each written once. What follows from it: the type of a row (tables.ts), the statement that writes turns
 * (record.ts), reading them (turns.ts), what a door hands to the recorder's thread (collect/exchange.ts) and what /api shows
 * (api/schema.ts). turn-columns.test.ts compares it with the database. A new column is a field of Turn, a line here and a
 * migration.
 */
import type { ColumnType } from 'kysely';
import type { Turn } from '../collect/turn.ts';
import type { Frame } from './content.ts';

/** A turn as it is stored: request and answers taken apart (content.ts), the token arrays of all choices in a row. */
export type StoredTurn = Omit<Turn, 'request' | 'choices'> & {
  /** Null: from before each message was stored once; then `request` and `choices` are columns. */
  readonly frame: Frame | null;
  /** What the frame's places are filled with: names of messages of the same agent and day. */
  readonly parts: readonly string[] | null;
  /** Of request and choices as JSON, put together again. */
  readonly contentBytes: number | null;
  readonly tokenIds?: readonly number[];
  readonly logprobs?: readonly (number | null)[];
  /** For each choice how many token ids and how many logprobs are its own: [ids of 0, logprobs of 0, ids of 1, …]; -1: none given. */
  readonly tokenCounts?: readonly number[];
  /** What the agent's own request says it is about, in `metadata.task_type`. */
  readonly taskType: string | null;
  /** There are masks of redaction in a user's words. */
  readonly personal: boolean;
  /** Of the tools that were offered, those the answer called; null: none was offered. */
  readonly toolsCalled: readonly string[] | null;
};

type Column = {
  readonly name: string;
  readonly type:
    | 'uuid'
    | 'text'
    | 'boolean'
    | 'integer'
    | 'bigint'
    | 'double precision'
    | 'timestamp with time zone'
    | 'json'
    | 'jsonb'
    | 'text[]'
    | 'uuid[]'
    | 'integer[]'
    | 'real[]';
  /** It may be missing: a null in the database, and in a Turn a null or no field at all. */
  readonly null?: true;
  /** Known at the door, before anything of the exchange is read. */
  readonly door?: true;
  /** Part of what /api shows of a turn. */
  readonly shown?: true;
  /** No field of a Turn: what a part of one is stored as, or computed from one. */
  readonly inner?: true;
  /** As large as others choose: left out where a turn is shown without its content. */
  readonly content?: true;
};

const door = { door: true } as const;
const shown = { shown: true } as const;
const known = { ...door, ...shown } as const;
const orNull = { null: true } as const;
const content = { content: true, null: true } as const;
const inner = { inner: true } as const;

// biome-ignore format: a line each
export const turnColumns = {
  id:               { name: 'id', type: 'uuid', ...known },
  agent:            { name: 'agent', type: 'text', ...door },
  trajectory:       { name: 'trajectory', type: 'text', ...door },
  user:             { name: 'user_id', type: 'text', ...door, ...orNull },
  origin:           { name: 'origin', type: 'text', ...door },
  clientKey:        { name: 'client_key', type: 'text', ...door, ...orNull },
  endpoint:         { name: 'endpoint', type: 'text', ...known },
  keys:             { name: 'keys', type: 'text[]', ...known },
  startedAt:        { name: 'started_at', type: 'timestamp with time zone', ...known },
  firstTokenMs:     { name: 'first_token_ms', type: 'double precision', ...known, ...orNull },
  latencyMs:        { name: 'latency_ms', type: 'double precision', ...known },
  upstream:         { name: 'upstream', type: 'text', ...known },
  release:          { name: 'release', type: 'text', ...known },
  assigned:         { name: 'assigned', type: 'text', ...door, ...orNull },
  model:            { name: 'model', type: 'text', ...shown },
  status:           { name: 'status', type: 'text', ...known },
  httpStatus:       { name: 'http_status', type: 'integer', ...known },
  error:            { name: 'error', type: 'text', ...known, ...orNull },
  attempts:         { name: 'attempts', type: 'integer', ...known },
  stream:           { name: 'stream', type: 'boolean', ...known },
  promptTokens:     { name: 'prompt_tokens', type: 'bigint', ...shown, ...orNull },
  completionTokens: { name: 'completion_tokens', type: 'bigint', ...shown, ...orNull },
  reasoningTokens:  { name: 'reasoning_tokens', type: 'bigint', ...shown, ...orNull },
  threadKey:        { name: 'thread_key', type: 'text', ...orNull },
  redactions:       { name: 'redactions', type: 'jsonb', ...shown },
  taskType:         { name: 'task_type', type: 'text', ...orNull, ...inner },
  personal:         { name: 'personal', type: 'boolean', ...inner },
  toolsCalled:      { name: 'tools_called', type: 'text[]', ...orNull, ...inner },
  contentBytes:     { name: 'content_bytes', type: 'integer', ...orNull, ...inner },
  frame:            { name: 'frame', type: 'json', ...content, ...inner },
  parts:            { name: 'parts', type: 'uuid[]', ...content, ...inner },
  usage:            { name: 'usage', type: 'jsonb', ...shown, ...content },
  promptTokenIds:   { name: 'prompt_token_ids', type: 'integer[]', ...content },
  tokenIds:         { name: 'token_ids', type: 'integer[]', ...content, ...inner },
  logprobs:         { name: 'logprobs', type: 'real[]', ...content, ...inner },
  tokenCounts:      { name: 'token_counts', type: 'integer[]', ...content, ...inner },
} as const satisfies { readonly [Field in keyof Required<StoredTurn>]: Column };

type Columns = typeof turnColumns;
export type TurnField = keyof Columns;
type With<Mark extends keyof Column> = {
  [Field in TurnField]: Columns[Field] extends { readonly [M in Mark]: true } ? Field : never;
}[TurnField];
export type DoorField = With<'door'>;
export type ShownField = With<'shown'>;
type ContentField = With<'content'>;

/** The value as the driver gives it. */
type Read<Field extends TurnField> = Columns[Field]['type'] extends 'timestamp with time zone'
  ? Date
  : Mutable<Exclude<StoredTurn[Field], undefined>> | (Columns[Field] extends { null: true } ? null : never);
type Mutable<T> = T extends readonly (infer Item)[] ? Item[] : T;
type Written<Field extends TurnField> = Columns[Field]['type'] extends 'json' | 'jsonb'
  ? ColumnType<Read<Field>, string | null, string | null>
  : Read<Field>;

export type TurnRow = { [Field in TurnField as Columns[Field]['name']]: Read<Field> };
export type TurnColumnTypes = { [Field in TurnField as Columns[Field]['name']]: Written<Field> };

const all = Object.entries(turnColumns) as [TurnField, Column][];
const fieldsWith = <Mark extends 'door' | 'shown'>(mark: Mark) =>
  all.filter(([, column]) => column[mark]).map(([field]) => field) as With<Mark>[];
export const doorFields = fieldsWith('door');
export const shownFields = fieldsWith('shown');

/** Every column but those whose size others choose. */
export const turnFacts = all.filter(([, column]) => !column.content).map(([, { name }]) => name) as Exclude<
  keyof TurnRow,
  Columns[ContentField]['name']
>[];
type ContentName = Columns[ContentField]['name'];
export const emptyContent = Object.fromEntries(
  all.filter(([, column]) => column.content).map(([, { name }]) => [name, null]),
) as Record<ContentName, null>;

export const turnNames: string = all.map(([, { name }]) => name).join(', ');

/** A turn without what is stored of it in another form. */
export type TurnFacts = Omit<Turn, 'request' | 'choices'>;

/** Fields that are not there at all when the database has nothing for them. */
const optional: ReadonlySet<string> = new Set(
  Object.keys({ clientKey: 0, assigned: 0, promptTokenIds: 0 } satisfies {
    [Field in keyof TurnFacts as object extends Pick<TurnFacts, Field> ? Field : never]-?: 0;
  }),
);

export const turnFieldsOf = (row: TurnRow): TurnFacts => {
  const fields: Record<string, unknown> = {};
  for (const [field, column] of all) {
    if (column.inner) continue;
    const value = row[column.name as keyof TurnRow];
    if (value !== null) fields[field] = value instanceof Date ? value.getTime() : value;
    else if (!optional.has(field)) fields[field] = null;
  }
  return fields as TurnFacts;
};
