import { expect, test } from 'vitest';
import { runCanary } from './canary.ts';

test('nothing of invented people survives in the database, its log, the journal, the output or exported files', async () => {
  const { survivors, turns, exported } = await runCanary(3);
  expect(survivors).toEqual([]);
  expect(turns).toBe(3 * 19 * 3);
  expect(exported).toBeGreaterThan(0);
});
