/** Reading turns back, in the shape they were recorded in. Writing them is record.ts. */
import type { Selectable } from 'kysely';
import type { Choice, Turn } from '../collect/turn.ts';
import { addDays, dayOf } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';
import type { Day, TurnsTable } from './tables.ts';
import { earliestTime, latestTime } from './times.ts';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The day a UUIDv7 says it was made on; null for other ids. */
export const dayOfUuid = (id: string): Day | null => {
  const at = Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
  return id[14] === '7' && at >= earliestTime && at < latestTime ? dayOf(at) : null;
};

/**
 * Gives each choice its token arrays back. Logprobs are kept as 32-bit floats, which is what servers compute; a value
 * JSON could not carry (minus infinity) came as null.
 */
const joinTokens = (row: Selectable<TurnsTable>): Choice[] => {
  const { choices, token_counts: counts } = row;
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

/** Every column but those whose size others choose. */
export const turnFacts = [
  ...(['id', 'day', 'agent', 'trajectory', 'user_id', 'origin', 'endpoint', 'keys', 'started_at'] as const),
  ...(['first_token_ms', 'latency_ms', 'upstream', 'release', 'assigned', 'model', 'status', 'http_status'] as const),
  ...(['error', 'attempts', 'stream', 'prompt_tokens', 'completion_tokens', 'reasoning_tokens'] as const),
  ...(['thread_key', 'redactions'] as const),
] as const;

export const turnOf = (row: Selectable<TurnsTable>): Turn => ({
  id: row.id,
  trajectory: row.trajectory,
  agent: row.agent,
  user: row.user_id,
  origin: row.origin,
  keys: row.keys,
  endpoint: row.endpoint,
  startedAt: row.started_at.getTime(),
  firstTokenMs: row.first_token_ms,
  latencyMs: row.latency_ms,
  upstream: row.upstream,
  release: row.release,
  ...(row.assigned !== null && { assigned: row.assigned }),
  model: row.model,
  status: row.status,
  httpStatus: row.http_status,
  error: row.error,
  attempts: row.attempts,
  stream: row.stream,
  request: row.request,
  choices: joinTokens(row),
  ...(row.prompt_token_ids !== null && { promptTokenIds: row.prompt_token_ids }),
  promptTokens: row.prompt_tokens,
  completionTokens: row.completion_tokens,
  reasoningTokens: row.reasoning_tokens,
  usage: row.usage,
  threadKey: row.thread_key,
  redactions: row.redactions,
});

/** The turn with this id. A UUIDv7 says in which day to look; for other ids every day's index is asked. */
export const readTurn = async (store: Store, id: string, agent?: string): Promise<Turn | null> => {
  if (!uuid.test(id)) return null;
  let query = store.db.selectFrom('turns').selectAll().where('id', '=', id);
  const day = dayOfUuid(id);
  if (day !== null) query = query.where('day', '>=', addDays(day, -1)).where('day', '<=', addDays(day, 1));
  if (agent !== undefined) query = query.where('agent', '=', agent);
  const row = await query
    .limit(1)
    .executeTakeFirst()
    .catch((error) => {
      throw storeError(error, `Reading turn ${id}`);
    });
  return row ? turnOf(row) : null;
};
