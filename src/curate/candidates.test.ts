import { expect, test } from 'vitest';
import { waitingFor } from './fixtures-waiting.ts';

test('what was kept comes back by name, also where it is more than is sorted at a time', async () => {
  const names = Array.from({ length: 40_000 }, (_, i) => `talk-${(i * 7919) % 40_000}-é한`);
  const waiting = await waitingFor(
    names.map((trajectory, i) => ({
      ...{ trajectory, day: '2026-05-20', users: [], keys: [], sources: [], tenants: [], taskType: null, score: i % 3 },
      ...{ fingerprint: trajectory, question: new Uint32Array(0) },
    })),
    { kAnonymity: 1, nearDuplicate: 1 },
    1,
  );
  const ranked = waiting.ranked();
  expect(new Set(ranked).size).toBe(40_000);
  expect([...ranked].map((number) => number % 3)).toEqual(
    [...ranked].map((number) => number % 3).sort((a, b) => b - a),
  );
  const kept = ranked.filter((number) => number % 8 !== 0);
  const back: string[] = [];
  for await (const note of waiting.inOrder(kept)) back.push(note);
  expect(back).toEqual(names.filter((_, i) => i % 8 !== 0).sort());
});
