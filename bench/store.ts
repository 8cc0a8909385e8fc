/**
 * How fast turns are recorded, and whether reading stays flat as trajectories grow: 10k → 100k → 1M over ten days of
 * partitions, one turn each, on the embedded server with fsync on. The rate is that of the first 20,000 turns of a step,
 * recorded as Pawl records them; the server fills up the rest by itself.
 * `--max 100000` stops earlier. With `--turns 120` it is what long conversations take instead (long-conversations.ts).
 * Progress on stderr; the last line of stdout is one JSON object.
 */
import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { JournalEntry } from '../src/collect/signal.ts';
import { origins } from '../src/collect/trajectory.ts';
import type { Frame } from '../src/store/content.ts';
import { turn, uuidAt } from '../src/store/fixtures.ts';
import { openStore, type Store } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { readStats } from '../src/store/stats.ts';
import { listTrajectories, readTrajectory } from '../src/store/trajectories.ts';
import { longConversations } from './long-conversations.ts';

const { values } = parseArgs({
  options: {
    max: { type: 'string', default: '1000000' },
    turns: { type: 'string' },
    conversations: { type: 'string', default: '100' },
  },
});
const max = Number(values.max);
if (!Number.isInteger(max) || max < 1000) throw new Error(`--max ${values.max} must be a whole number from 1000 on.`);
const steps = [...new Set([10_000, 100_000, 1_000_000].filter((step) => step < max).concat(max))];
const batchSize = 500;
const measuredTurns = 20_000; // of each step go through writeEntries; the server makes the rest

const days = 10;
const dayMs = 86_400_000;
const now = Date.now();

// About 2 kB of conversation per turn, like a short support case.
const words = 'the parcel left our warehouse on monday and should arrive within two working days '.repeat(10);
const entryOf = (n: number): JournalEntry => {
  // Spread over the days without order, as the worst case for caches; real traffic is kinder.
  const startedAt = now - ((n * 7919) % (days * 86_400)) * 1000;
  return {
    kind: 'turn',
    turn: turn({
      id: uuidAt(startedAt),
      trajectory: `conversation-${n}`,
      agent: `agent-${n % 5}`,
      user: `user-${n % 10_000}`,
      origin: n % 10 === 0 ? origins[(n / 10) % origins.length]! : 'production',
      release: `release-${n % 7}`,
      status: n % 100 === 0 ? 'error' : 'ok',
      startedAt,
      request: {
        model: 'small',
        messages: [
          { role: 'system', content: words },
          { role: 'user', content: `Case ${n}: where is it?` },
        ],
      },
      choices: [{ index: 0, message: { role: 'assistant', content: words }, finishReason: 'stop' }],
    }),
  };
};

/** About the rows of entryOf, made by the server, to get to a million in minutes; what was said stands in the frame. */
const fill = `
with made as materialized (
  select n, at, (at at time zone 'UTC')::date as day, 'agent-' || n % 5 as agent, 'user-' || n % 10000 as user_id, 'release-' || n % 7 as release,
    case when n % 10 = 0 then (array['production', 'shadow', 'simulation', 'evaluation', 'judge'])[(n / 10) % 5 + 1] else 'production' end as origin
  from generate_series($1::bigint, $2::bigint) n, lateral (select to_timestamp(floor($3::double precision) - (n * 7919) % $4::bigint) as at) t
), turns as (
  insert into pawl.turns (id, day, agent, trajectory, user_id, origin, endpoint, keys, started_at, latency_ms, upstream, release, model,
    status, http_status, attempts, stream, prompt_tokens, completion_tokens, frame, parts, content_bytes, redactions)
  select gen_random_uuid(), day, agent, 'conversation-' || n, user_id, origin, 'chat', '{}', at, 250, 'local', release, 'small',
    case when n % 100 = 0 then 'error' else 'ok' end, 200, 1, false, 12, 4,
    $5::json, '{}', 1800, '{}' from made
)
insert into pawl.trajectories select 'conversation-' || n, agent, day, user_id, origin, 'unknown', at, at + interval '250 ms', 1,
  (n % 100 = 0)::integer, 12, 4, 250, release, at from made`;

const filling: Frame = {
  request: [['messages', 'is', [{ role: 'user', content: words }]]],
  choices: [[0, 'stop', 'is', { role: 'assistant', content: words }]],
};

const median = (sorted: readonly number[]): number => sorted[Math.floor(sorted.length / 2)] ?? 0;
const p50 = async (times: number, run: () => Promise<unknown>): Promise<number> => {
  const taken: number[] = [];
  for (let i = 0; i < times; i++) {
    const begun = performance.now();
    await run();
    taken.push(performance.now() - begun);
  }
  return Number(median(taken.sort((a, b) => a - b)).toFixed(2));
};

async function manyConversations(store: Store): Promise<void> {
  const figures: Record<string, Record<string, number>> = {};
  let written = 0;
  for (const step of steps) {
    const begun = performance.now();
    const from = written;
    let said = begun;
    const measured = Math.min(step, from + measuredTurns);
    while (written < measured) {
      const size = Math.min(batchSize, measured - written);
      const { inserted } = await writeEntries(
        store,
        Array.from({ length: size }, (_, i) => entryOf(written + i)),
      );
      if (inserted !== size) throw new Error(`${size - inserted} of ${size} turns were not inserted.`);
      written += size;
      if (performance.now() - said > 5000) {
        said = performance.now();
        console.error(`${written} trajectories, ${Math.round(((written - from) / (said - begun)) * 1000)}/s`);
      }
    }
    const rate = Math.round(((written - from) / (performance.now() - begun)) * 1000);
    while (written < step) {
      const size = Math.min(50_000, step - written);
      await store.pool.query(fill, [written, written + size - 1, now / 1000, days * 86_400, JSON.stringify(filling)]);
      written += size;
      console.error(`${written} trajectories, filled by the server`);
    }
    // The server does this by itself in the background; here the figures should not depend on when.
    await store.pool.query('analyze pawl.trajectories; analyze pawl.turns');
    let cursor: string | null = null;
    for (let page = 0; page < 20; page++)
      cursor = (await listTrajectories(store, { limit: 50, cursor })).cursor ?? cursor;
    const list = (filter: Parameters<typeof listTrajectories>[1]) =>
      p50(30, () => listTrajectories(store, { limit: 50, ...filter }));
    figures[step] = {
      insert_per_s: rate,
      list_ms: await list({}),
      list_page_20_ms: await list({ cursor }),
      list_agent_ms: await list({ agent: 'agent-3' }),
      list_agent_origin_ms: await list({ agent: 'agent-0', origin: 'simulation' }),
      list_user_ms: await p50(30, () => listTrajectories(store, { limit: 50, user: `user-${randomInt(10_000)}` })),
      list_release_ms: await list({ release: 'release-2' }),
      list_errors_ms: await list({ status: 'error' }),
      list_a_past_day_ms: await list({ since: new Date(now - 6 * dayMs), until: new Date(now - 5 * dayMs) }),
      read_one_ms: await p50(100, () => readTrajectory(store, `conversation-${randomInt(written)}`)),
    };
    console.error(`${step}: ${JSON.stringify(figures[step])}`);
  }
  const [first, last] = [figures[steps[0]!]!, figures[steps.at(-1)!]!];
  const growth = Object.fromEntries(
    Object.keys(first)
      .filter((name) => name.endsWith('_ms'))
      .map((name) => [name.replace('_ms', ''), Number((last[name]! / first[name]!).toFixed(2))]),
  );
  const { sizeBytes: databaseBytes } = await readStats(store);
  console.log(
    JSON.stringify({
      bench: 'store',
      batch: batchSize,
      days,
      steps: figures,
      growth,
      from: steps[0],
      to: steps.at(-1),
      database_bytes: databaseBytes,
    }),
  );
}

const home = mkdtempSync(join(tmpdir(), 'pawl-bench-store-'));
const store = await openStore({ home });
try {
  if (values.turns === undefined) await manyConversations(store);
  else await longConversations(store, { turns: Number(values.turns), conversations: Number(values.conversations) });
} finally {
  await store.close();
  rmSync(home, { recursive: true, force: true });
}
