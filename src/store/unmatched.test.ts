import { expect, test } from 'vitest';
import { attachment, entry, noon, turn, uuidAt } from './fixtures.ts';
import { writeEntries } from './record.ts';
import { withStore } from './test-store.ts';
import { isThere, sweepUnmatched } from './unmatched.ts';

const day = 86_400_000;
const recorded = turn();
const about = [
  { kind: 'trajectory', id: 'conversation-1' },
  { kind: 'turn', id: recorded.id },
  { kind: 'key', id: 'order:1' },
] as const;
const aboutNothing = [
  { kind: 'trajectory', id: 'conversation-2' },
  { kind: 'turn', id: uuidAt(noon) },
  { kind: 'turn', id: 'not a turn' },
  { kind: 'key', id: 'order:2' },
  { kind: 'key', id: 'order:3' },
] as const;
const entries = [
  { kind: 'turn' as const, turn: recorded },
  { kind: 'attachment' as const, attachment: attachment({ key: 'order:1', trajectory: 'conversation-1' }) },
  { kind: 'attachment' as const, attachment: attachment({ key: 'order:3', trajectory: 'conversation-2' }) },
];
const signals = (receivedAt: number) =>
  [...about, ...aboutNothing].map((target) =>
    entry.signal({ identity: `${target.id} ${receivedAt}`, target, at: receivedAt, receivedAt }),
  );

test('what an agent has is told from what it has not, and from what another agent has', async () => {
  const store = await withStore();
  await writeEntries(store, entries);
  for (const target of about) {
    expect(await isThere(store, 'desk', target), target.id).toBe(true);
    expect(await isThere(store, 'shop', target), target.id).toBe(false);
  }
  for (const target of aboutNothing) expect(await isThere(store, 'desk', target), target.id).toBe(false);
});

test('what is about nothing goes after a month, counted; what is about something, or may still be, stays', async () => {
  const store = await withStore();
  await store.pool.query(`insert into pawl.installation (secret) values (repeat('s', 32))`);
  await writeEntries(store, [...entries, ...signals(noon), ...signals(noon + 2 * day)]);
  const later = new Date(noon + 31 * day);
  expect(await sweepUnmatched(store, new Date(noon + 29 * day))).toEqual({ signals: 0, keys: 0 });
  const both = await Promise.all([sweepUnmatched(store, later), sweepUnmatched(store, later)]);
  expect(both.map(({ signals }) => signals).sort()).toEqual([0, 5]);
  expect(both.map(({ keys }) => keys).sort()).toEqual([0, 1]);
  const left = await store.pool.query('select target_id from pawl.signals where received_at <= $1', [later]);
  expect(left.rows).toHaveLength(3 + 8);
  const losses = await store.db.selectFrom('losses').selectAll().execute();
  expect(losses.map(({ source, reason, count }) => [source, reason, count]).sort()).toEqual([
    ['unmatched', 'keys', 1],
    ['unmatched', 'signals', 5],
  ]);
  expect(await sweepUnmatched(store, new Date(noon + 33 * day))).toEqual({ signals: 5, keys: 0 });
});
