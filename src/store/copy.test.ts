import { describe, expect, test } from 'vitest';
import { CopyIn, type CopyType, rowsOf, UnfitValue } from './copy.ts';
import { withStore } from './test-store.ts';

const types = [
  ...([
    'uuid',
    'text',
    'boolean',
    'integer',
    'bigint',
    'double precision',
    'timestamp with time zone',
    'date',
  ] as const),
  ...(['json', 'jsonb', 'text[]', 'uuid[]', 'integer[]', 'real[]'] as const),
] satisfies CopyType[];
const id = '01a1efed-ce1e-76ce-926d-1fcfbdeec7f3';
const at = Date.UTC(2026, 4, 20, 12, 0, 0, 123);

const usual: readonly unknown[] = [
  ...[id, 'Grüße 😀', true, -7, 9_007_199_254_740_991, 0.1, at, '2026-05-20'],
  ...['{"b":1, "a":2}', { b: [1], a: 'x' }, ['a', '', 'ü'], [id], [1, -2], [0.5, null]],
];
const nothing = types.map(() => null);

describe('a row that is copied', () => {
  test('comes back as the values it was made of, nulls and empty lists included', async () => {
    const store = await withStore();
    const client = await store.pool.connect();
    await client.query(`create temp table t (${types.map((type, i) => `c${i} ${type}`).join(', ')})`);
    const early = usual
      .with(6, Date.UTC(1969, 11, 31))
      .with(7, '1999-12-31')
      .with(4, -1)
      .with(3, -(2 ** 31));
    const empty = usual.with(1, '').with(10, []).with(11, []).with(12, []).with(13, []);
    const odd = usual.with(1, 'a\0b \ud83d').with(5, Number.NaN).with(3, undefined).with(13, [null]);
    const rows = [usual, nothing, early, empty, odd].map(rowsOf(types));
    await client.query(new CopyIn('t', rows)).done;
    const { rows: found } = await client.query(`select *, c8::text as c8, c11::text[] as c11 from t`);
    client.release();
    const asRead = (values: readonly unknown[]) =>
      Object.fromEntries(
        values.map((value, i) => [`c${i}`, i === 6 && value !== null ? new Date(value as number) : value]),
      );
    expect(found).toEqual([
      asRead(usual),
      asRead(nothing),
      asRead(early),
      asRead(empty),
      asRead(usual.with(1, 'a\ufffdb \ufffd').with(5, null).with(3, null).with(13, [null])),
    ]);
  });

  test('may be of any length, and stands as it is while others are made', async () => {
    const store = await withStore();
    const client = await store.pool.connect();
    await client.query('create temp table t (a text, b text[])');
    const row = rowsOf(['text', 'text[]']);
    const said = [0, 1, 47, 48, 49, 127, 5000, 100_000, 262_000, 1_000_000, 3].flatMap((length) => [
      ['x'.repeat(length), ['y'.repeat(length), 'ü']],
      ['ü'.repeat(length), ['😀'.repeat(length)]],
    ]);
    await client.query(new CopyIn('t', said.map(row))).done;
    const { rows } = await client.query('select a, b from t');
    client.release();
    expect(rows.map(({ a, b }) => [a, b])).toEqual(said);
  });

  test.each([
    ['uuid', 'not a uuid'],
    ['uuid', `${id.slice(0, -1)}g`],
    ['uuid', id.replaceAll('-', '+')],
    ['text', 5],
    ['boolean', 'true'],
    ['integer', 0.5],
    ['integer', 2 ** 31],
    ['bigint', 2 ** 53],
    ['double precision', '1'],
    ['timestamp with time zone', '2026-05-20'],
    ['text[]', 'a'],
    ['integer[]', [1e10]],
    ['real[]', [1e300]],
  ] as const)('is not made of what is no %s: %j', (type, value) => {
    const row = rowsOf([type]);
    expect(() => row([value])).toThrow(UnfitValue);
    expect(row([null])).toEqual(Buffer.from([0, 1, 255, 255, 255, 255])); // the next one is whole
  });
});

test('what the database refuses of a copy is the error of the copy, and the connection goes on', async () => {
  const store = await withStore();
  const client = await store.pool.connect();
  await client.query('create temp table t (a text primary key)');
  const row = rowsOf(['text']);
  const twice = client.query(new CopyIn('t', [row(['a']), row(['a'])])).done;
  await expect(twice).rejects.toMatchObject({ code: '23505' });
  await expect(client.query(new CopyIn('nowhere', [row(['a'])])).done).rejects.toMatchObject({ code: '42P01' });
  await client.query(new CopyIn('t', [row(['b'])])).done;
  expect((await client.query('select a from t')).rows).toEqual([{ a: 'b' }]);
  client.release();
});
