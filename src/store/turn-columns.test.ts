import { expect, test } from 'vitest';
import { withStore } from './test-store.ts';
import { turnColumns } from './turn-columns.ts';

test('the columns of a turn are those of the table, with their types and with what may be missing', async () => {
  const store = await withStore();
  const { rows } = await store.pool.query<{ name: string; type: string; null: boolean }>(
    `select a.attname as name, format_type(a.atttypid, null) as type, not a.attnotnull as null
     from information_schema.columns c join pg_attribute a
       on a.attrelid = 'pawl.turns'::regclass and a.attname = c.column_name and c.is_generated = 'NEVER'
     where c.table_schema = 'pawl' and c.table_name = 'turns'`,
  );
  const inTable = Object.fromEntries(rows.map(({ name, ...column }) => [name, column]));
  const byHand = {
    day: { type: 'date', null: false },
    // Turns from before each message was stored once.
    request: { type: 'jsonb', null: true },
    choices: { type: 'jsonb', null: true },
  };
  const written = Object.values(turnColumns).map(({ name, type, ...rest }) => [name, { type, null: 'null' in rest }]);
  expect({ ...Object.fromEntries(written), ...byHand }).toEqual(inTable);
});
