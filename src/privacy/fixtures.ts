/** For tests of forgetting: all that a database holds, as text. */
import type { Store } from '../store/postgres.ts';

/** As if ten minutes had passed: until then a turn under way may refer to a message. */
export async function passTenMinutes(store: Store): Promise<void> {
  await store.pool.query(`update pawl.messages set sent_at = sent_at - interval '11 minutes'`);
  await store.pool.query(`update pawl.erasures set sweep_after = sweep_after - interval '11 minutes'`);
}

/** Every column of every table of the schema; bytes both as they are and as hex. */
export async function everythingIn(store: Store): Promise<string> {
  const { rows } = await store.pool.query<{ name: string }>(
    `select format('%I.%I', table_schema, table_name) as name from information_schema.tables where table_schema = 'pawl'
     order by 1`,
  );
  const dumps = [];
  for (const { name } of rows)
    dumps.push(
      (
        await store.pool.query<{ all: string }>(
          `select coalesce(string_agg(t::text, E'\\n' order by t::text), '') as all from only ${name} t`,
        )
      ).rows[0]!.all,
    );
  const text = dumps.join('\n');
  return (
    text +
    Buffer.from([...text.matchAll(/\\\\x([0-9a-f]+)/g)].map(([, hex]) => hex).join('0a'), 'hex').toString('latin1')
  );
}
