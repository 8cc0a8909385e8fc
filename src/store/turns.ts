/** Reading turns back, in the shape they were recorded in. Writing them is record.ts. */
import type { Selectable } from 'kysely';
import type { Choice, Turn } from '../collect/turn.ts';
import type { Content } from './content.ts';
import { readContents } from './messages.ts';
import { addDays, dayOf } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';
import type { Day, TurnsTable } from './tables.ts';
import { timeOfUuid } from './times.ts';
import { emptyContent, turnFieldsOf } from './turn-columns.ts';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The day a UUIDv7 says it was made on; null for other ids. */
export const dayOfUuid = (id: string): Day | null => {
  const at = timeOfUuid(id);
  return at === null ? null : dayOf(at);
};

export type TurnRow = Selectable<TurnsTable>;

/**
 * Gives each choice its token arrays back. Logprobs are kept as 32-bit floats, which is what servers compute; a value
 * JSON could not carry (minus infinity) came as null.
 */
const joinTokens = (choices: readonly Choice[], row: TurnRow): readonly Choice[] => {
  const { token_counts: counts } = row;
  if (counts === null) return choices;
  let id = 0;
  let logprob = 0;
  return choices.map((choice, i) => {
    const ids = counts[2 * i] ?? -1;
    const logprobs = counts[2 * i + 1] ?? -1;
    const joined = {
      ...choice,
      ...(ids >= 0 && { tokenIds: row.token_ids?.slice(id, id + ids) ?? [] }),
      ...(logprobs >= 0 && {
        logprobs: (row.logprobs?.slice(logprob, logprob + logprobs) ?? []).map((value) =>
          value === null ? Number.NEGATIVE_INFINITY : Math.fround(value),
        ),
      }),
    };
    id += Math.max(0, ids);
    logprob += Math.max(0, logprobs);
    return joined;
  });
};

const nothing: Content = { request: {}, choices: [] };
const missing = 'Part of the content of this turn is missing from the database: what carried it there was damaged.';

/** `content` null: part of it is missing. */
const turnOf = (row: TurnRow, content: Content | null): Turn => {
  const facts = turnFieldsOf(row);
  if (content === null) return { ...facts, ...nothing, error: facts.error ?? missing };
  return { ...facts, request: content.request, choices: joinTokens(content.choices, row) };
};

/** A row of `turnFacts` alone, for what is too large to read. */
export const withoutContent = (facts: Omit<TurnRow, keyof typeof noContent>): TurnRow => ({ ...facts, ...noContent });
const noContent = { ...emptyContent, request: null, choices: null };

/** Of rows from before each message was stored once, and of those that were read without their content. */
const ownContent = ({ request, choices }: TurnRow): Content => ({ request: request ?? {}, choices: choices ?? [] });

/** The turns of these rows, in their order. What several of them share is read once. */
export const turnsOf = async (store: Store, rows: readonly TurnRow[]): Promise<Turn[]> => {
  const framed = rows.flatMap(({ id, agent, day, frame, parts, request }) =>
    frame === null || request !== null ? [] : [{ id, agent, day, frame, parts: parts ?? [] }],
  );
  const contents = await readContents(store, framed);
  return rows.map((row) => turnOf(row, contents.has(row.id) ? contents.get(row.id)! : ownContent(row)));
};

/** The turn with this id. A UUIDv7 says in which day to look; for other ids every day's index is asked. */
export const readTurn = async (store: Store, id: string, agent?: string): Promise<Turn | null> => {
  if (!uuid.test(id)) return null;
  let query = store.db.selectFrom('turns').selectAll().where('id', '=', id);
  const day = dayOfUuid(id);
  if (day !== null) query = query.where('day', '>=', addDays(day, -1)).where('day', '<=', addDays(day, 1));
  if (agent !== undefined) query = query.where('agent', '=', agent);
  try {
    return (await turnsOf(store, await query.limit(1).execute()))[0] ?? null;
  } catch (error) {
    throw storeError(error, `Reading turn ${id}`);
  }
};
