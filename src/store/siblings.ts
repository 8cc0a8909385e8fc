/** Reading the other answers to a turn's prompt (collect/sibling.ts). Writing them is record.ts. */
import { type Selectable, sql } from 'kysely';
import type { Sibling } from '../collect/sibling.ts';
import { type Store, storeError } from './postgres.ts';
import type { SiblingsTable } from './tables.ts';

const siblingOf = (row: Selectable<SiblingsTable>): Sibling => ({
  id: row.id,
  parent: row.parent,
  agent: row.agent,
  origin: row.origin,
  startedAt: row.started_at.getTime(),
  latencyMs: row.latency_ms,
  upstream: row.upstream,
  release: row.release,
  model: row.model,
  temperature: row.temperature,
  topP: row.top_p,
  choices: row.choices,
  promptTokens: row.prompt_tokens,
  completionTokens: row.completion_tokens,
  redactions: row.redactions,
});

export type Siblings = {
  /** By the id of their turn, in the order they were asked; turns without any are not in it. */
  readonly siblings: ReadonlyMap<string, readonly Sibling[]>;
  /** There are more than `maxBytes` hold; the earliest are here. */
  readonly cut: boolean;
};

/**
 * The siblings of these turns of one agent. Whether they may be learned from is what is said about the conversation of their
 * turn: ask for those of turns that have passed.
 */
export const readSiblings = async (
  store: Store,
  options: { readonly agent: string; readonly turns: readonly string[]; readonly maxBytes?: number },
): Promise<Siblings> => {
  const { agent, turns, maxBytes = 64 * 1024 * 1024 } = options;
  if (turns.length === 0) return { siblings: new Map(), cut: false };
  const sized = store.db
    .selectFrom('siblings')
    .select(['parent', 'id'])
    .select(sql<number>`sum(octet_length(choices::text)) over (order by started_at, id)`.as('so_far'))
    .where((where) => where('parent', '=', where.fn.any(where.val([...turns]))))
    .where('agent', '=', agent);
  try {
    const sizes = await sized.execute();
    const fitting = sizes.filter(({ so_far: bytes }) => bytes <= maxBytes);
    const rows = await store.db
      .selectFrom('siblings')
      .selectAll()
      .where((where) => where('parent', '=', where.fn.any(where.val(fitting.map(({ parent }) => parent)))))
      .where((where) => where('id', '=', where.fn.any(where.val(fitting.map(({ id }) => id)))))
      .orderBy('started_at')
      .orderBy('id')
      .execute();
    const siblings = new Map<string, Sibling[]>();
    for (const row of rows) siblings.set(row.parent, [...(siblings.get(row.parent) ?? []), siblingOf(row)]);
    return { siblings, cut: fitting.length < sizes.length };
  } catch (error) {
    throw storeError(error, 'Reading the siblings of turns');
  }
};
