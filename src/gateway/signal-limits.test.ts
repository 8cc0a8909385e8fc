import { expect, test } from 'vitest';
import { attachment, signal } from '../store/fixtures.ts';
import { scopes } from '../store/keys.ts';
import type { ClientKey } from './keys.ts';
import { createSignalLimits, trustPerDay, votersPerDay } from './signal-limits.ts';

const key: ClientKey = { id: 'k1', agent: 'desk', name: 'shop', origin: 'production', scopes, rateLimit: null };
const other: ClientKey = { ...key, id: 'k2' };
const day = 86_400_000;
const vote = (user: string | null, id = 'case-1') => ({
  kind: 'signal' as const,
  signal: signal({ user, target: { kind: 'trajectory', id } }),
});
const outcome = (id: string) => ({
  kind: 'signal' as const,
  signal: signal({ kind: 'outcome', target: { kind: 'trajectory', id } }),
});
const nothing = async () => false;

test('one key’s votes about one trajectory are those of so many users a day; a user may change their mind', async () => {
  const limits = createSignalLimits(nothing);
  for (let i = 0; i < votersPerDay; i++) await limits.check(key, vote(`user ${i}`), 0);
  await limits.check(key, vote('user 0'), 1);
  await expect(limits.check(key, vote('one more'), 1)).rejects.toMatchObject({
    status: 429,
    code: 'too_many_voters',
    retryAfterMs: day - 1,
  });
  await expect(limits.check(key, vote(null), 1)).rejects.toThrow(/votes of 20 users/);
  await limits.check(key, vote('one more', 'case-2'), 1);
  await limits.check(other, vote('one more'), 1);
  await limits.check(key, vote('one more'), day);
});

test('signals about what nobody has seen are taken on trust up to a number, then the database must know the target', async () => {
  const asked: string[] = [];
  const limits = createSignalLimits(async (agent, { id }) => {
    asked.push(`${agent} ${id}`);
    return id === 'recorded';
  });
  for (let i = 0; i < trustPerDay; i++) await limits.check(key, outcome(`invented ${i}`), 0);
  expect(asked).toEqual([]);
  await limits.check(key, outcome('recorded'), 0);
  await expect(limits.check(key, outcome('one more'), 0)).rejects.toMatchObject({
    status: 429,
    code: 'unknown_target',
  });
  const joined = { kind: 'attachment' as const, attachment: attachment({ trajectory: 'one more' }) };
  await expect(limits.check(key, joined, 0)).rejects.toThrow(/no trajectory "one more" of agent desk/);
  expect(asked).toEqual(['desk recorded', 'desk one more', 'desk one more']);
  await limits.check(other, outcome('one more'), 0);
  await limits.check(key, outcome('one more'), day);
});

test('what this gateway answered needs no trust, for its own agent', async () => {
  const limits = createSignalLimits(nothing);
  for (let i = 0; i < trustPerDay; i++) await limits.check(key, outcome(`invented ${i}`), 0);
  limits.answered('desk', 'turn-1', 'case-1');
  await limits.check(key, outcome('case-1'), 0);
  const aboutTurn = { kind: 'signal' as const, signal: signal({ target: { kind: 'turn', id: 'turn-1' } }) };
  await limits.check(key, aboutTurn, 0);
  limits.answered('shop', 'turn-2', 'case-2');
  await expect(limits.check(key, outcome('case-2'), 0)).rejects.toThrow(/no trajectory/);
});

test('a database that cannot be asked does not cost a signal', async () => {
  const limits = createSignalLimits(() => Promise.reject(new Error('away')));
  for (let i = 0; i <= trustPerDay; i++) await limits.check(key, outcome(`case ${i}`), 0);
});
