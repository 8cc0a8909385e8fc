import { afterEach, expect, it } from 'vitest';
import { converse } from '../score/fixtures.ts';
import { countedFigure, dropOldFigures, goodFor, keptFrom } from './figures.ts';
import type { Store } from './postgres.ts';
import { writeEntries } from './record.ts';
import { withStore } from './test-store.ts';

const figure = { agent: 'desk', name: 'evidence', of: 'production' };
let counted = 0;
const count = async () => ({ good: ++counted });
afterEach(() => {
  counted = 0;
});

const kept = async (store: Store) =>
  (await store.pool.query<{ value: unknown }>('select value from pawl.figures')).rows.map(({ value }) => value);

/** As the planner would know of it after so many were recorded. */
async function withMuch(rows = keptFrom): Promise<Store> {
  const store = await withStore();
  await writeEntries(
    store,
    converse('Where is it?', [{ say: 'Here.' }], { trajectory: 'c1' }).map((turn) => ({ kind: 'turn', turn })),
  );
  await store.pool.query(
    `update pg_class set reltuples = $1 where oid = (select min(inhrelid) from pg_inherits where inhparent = 'pawl.trajectories'::regclass)`,
    [rows],
  );
  return store;
}

it('with little stored a figure is counted at every look and not kept', async () => {
  const store = await withMuch(keptFrom - 1);
  const now = Date.UTC(2026, 0, 31);
  expect(await countedFigure(store, figure, count, { now })).toEqual({ value: { good: 1 }, countedAt: new Date(now) });
  expect((await countedFigure(store, figure, count)).value).toEqual({ good: 2 });
  expect(await kept(store)).toEqual([]);
});

it('with much stored it is counted once, and shown with when that was', async () => {
  const store = await withMuch();
  const first = await countedFigure(store, figure, count);
  expect(first.value).toEqual({ good: 1 });
  expect(await countedFigure(store, figure, count)).toEqual(first);
  expect(await countedFigure(store, { ...figure, of: 'simulation' }, count)).toMatchObject({ value: { good: 2 } });
});

it('those who look at once wait for the same count', async () => {
  const store = await withMuch();
  const looks = await Promise.all([1, 2, 3].map(() => countedFigure(store, figure, count)));
  expect(looks.map(({ value }) => value)).toEqual([{ good: 1 }, { good: 1 }, { good: 1 }]);
});

it('an old one is shown and counted again meanwhile; who is patient gets the new one', async () => {
  const store = await withMuch();
  await countedFigure(store, figure, count);
  const later = Date.now() + goodFor(0) + 1_000;
  expect((await countedFigure(store, figure, count, { now: later })).value).toEqual({ good: 1 });
  await expect.poll(async () => (await countedFigure(store, figure, count)).value).toEqual({ good: 2 });
  expect((await countedFigure(store, figure, count, { now: later + 9e6, isPatient: true })).value).toEqual({ good: 3 });
});

it('where counting again fails the old one is shown, and a first look says why', async () => {
  const store = await withMuch();
  const fails = async () => Promise.reject(new Error('It took too long.'));
  await expect(countedFigure(store, figure, fails)).rejects.toThrow('It took too long.');
  await countedFigure(store, figure, count);
  const later = Date.now() + goodFor(0) + 1_000;
  expect((await countedFigure(store, figure, fails, { now: later })).value).toEqual({ good: 1 });
  expect((await countedFigure(store, figure, count, { now: later, isPatient: true })).value).toEqual({ good: 2 });
});

it('is counted for at most a two-hundredth of the time, and at least once an hour where somebody looks', () => {
  expect([1, 1_000, 5_000, 60_000].map(goodFor)).toEqual([60_000, 200_000, 1_000_000, 3_600_000]);
});

it('figures that nobody has counted for a week go', async () => {
  const store = await withMuch();
  await countedFigure(store, figure, count);
  await countedFigure(store, { ...figure, of: 'an older reward' }, count);
  await store.pool.query(`update pawl.figures set counted_at = now() - interval '8 days' where of = 'an older reward'`);
  await dropOldFigures(store);
  expect(await kept(store)).toEqual([{ good: 1 }]);
});
