import { expect, test } from 'vitest';
import { addressOf } from './client.ts';
import { withHead } from './rows.ts';
import { ago, bytes, clock, duration, pawl, points, short } from './words.ts';

test('numbers are short and have their units', () => {
  expect([9_999, 45_600, 7_800_000].map(short)).toEqual(['9,999', '45.6k', '7.8M']);
  expect([0.4, 250, 2_900, 61_000, 7_200_000, 259_200_000].map(duration)).toEqual([
    ...['< 1 ms', '250 ms', '2.9 s', '1 min 1 s', '2.0 h', '3.0 days'],
  ]);
  expect([0, 1023, 1024, 1_572_864].map(bytes)).toEqual(['0 B', '1023 B', '1.0 kB', '1.5 MB']);
  expect([0.307, -0.06].map(points)).toEqual(['+30.7', '−6.0']);
});

test('a moment is as long as its distance needs', () => {
  const now = new Date(2026, 10, 18, 14, 2, 11);
  expect(clock(new Date(2026, 10, 18, 9, 5, 3), now)).toBe('09:05:03');
  expect(clock(new Date(2026, 10, 3, 9, 5, 3), now)).toBe('3 Nov 09:05');
  expect(clock(new Date(2025, 10, 3), now)).toBe('3 Nov 2025');
  expect(ago(new Date(now.getTime() - 90_000), now)).toBe('2 min ago');
  expect(ago(new Date(now.getTime() + 3_600_000), now)).toBe('in 1 h');
});

test('a command can be pasted whatever stands in it', () => {
  expect(pawl('rollouts', 'abort', 'v2-r1', ['--reason', "it's $(rm -rf /)"])).toBe(
    `pawl rollouts abort v2-r1 --reason 'it'\\''s $(rm -rf /)'`,
  );
  expect(pawl('audit', 'list', ['--who', ''], ['--type', undefined], undefined)).toBe('pawl audit list');
});

test('an address has its parameters in it, each as one part', () => {
  expect(addressOf('/api/rollouts/:id/:move', { param: { id: 'a/b?c', move: 'hold' } })).toBe(
    '/api/rollouts/a%2Fb%3Fc/hold',
  );
  expect(addressOf('/api/audit', { query: { actor: 'ann & bob', event: '', cursor: undefined, limit: 5 } })).toBe(
    '/api/audit?actor=ann+%26+bob&limit=5',
  );
});

test('what is new stands before what is known, and what changed takes its own place', () => {
  const row = (id: string, turns: number) => ({ id, turns });
  const known = [row('b', 1), row('a', 1)];
  expect(withHead(known, [row('c', 1), row('b', 2)], ({ id }) => id)).toEqual([row('c', 1), row('b', 2), row('a', 1)]);
});
