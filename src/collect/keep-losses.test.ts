import { expect, it } from 'vitest';
import { withStore } from '../store/test-store.ts';
import { keepLosses, newLosses } from './keep-losses.ts';
import { dropReasons, type RecorderStats } from './recorder.ts';

const at = new Date(0);

it('counts only what was lost since the last look', () => {
  expect(newLosses({}, { disk: 0, 'queue-full': 2 }, at)).toMatchObject([{ reason: 'queue-full', count: 2 }]);
  expect(newLosses({ 'queue-full': 2 }, { 'queue-full': 5 }, at)).toMatchObject([{ count: 3 }]);
  expect(newLosses({ 'queue-full': 5 }, { 'queue-full': 5 }, at)).toEqual([]);
});

it('writes losses down once', async () => {
  const store = await withStore();
  const dropped = { ...Object.fromEntries(dropReasons.map((reason) => [reason, 0])), disk: 7 };
  const stats = { dropped, corrupt: 1, refused: 0 } as unknown as RecorderStats;
  const upkeep = keepLosses(
    store,
    () => stats,
    (error) => {
      throw error;
    },
  );
  await upkeep.close();
  const losses = (await store.db.selectFrom('losses').selectAll().execute()).map(({ reason, count }) => [
    reason,
    count,
  ]);
  expect(losses.toSorted()).toEqual([
    ['corrupt', 1],
    ['disk', 7],
  ]);
});
