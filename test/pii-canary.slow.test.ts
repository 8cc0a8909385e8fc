import { expect, test } from 'vitest';
import { runCanary } from './canary.ts';

test('nothing of five hundred invented people survives in the database, its log, the journal, the output, exported files or a model’s papers', async () => {
  const { survivors, turns, exported } = await runCanary(500, { learns: true });
  expect(survivors).toEqual([]);
  expect(turns).toBe(500 * 19 * 3);
  expect(exported).toBeGreaterThan(0);
}, 3_600_000);

test('where names are looked for when a dataset is made, which is the default, they are in the database and in nothing that leaves it', async () => {
  const { survivors, exported } = await runCanary(20, { learns: true, entities: 'curate' });
  expect(survivors).toEqual([]);
  expect(exported).toBeGreaterThan(0);
}, 3_600_000);
