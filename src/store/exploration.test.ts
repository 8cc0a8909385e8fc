import { expect, it } from 'vitest';
import { readExploration, returnAllowance, type Taken, takeAllowance } from './exploration.ts';
import { withStore } from './test-store.ts';

const limits = { perHour: 10, moneyPerDay: 1 };

it('calls and money are taken together, up to each limit and not beyond, and given back', async () => {
  const store = await withStore();
  const take = (calls: number, money: number, within = limits) =>
    takeAllowance(store, 'desk', { calls, money }, within);
  const first = (await take(3, 0.6)) as Taken;
  expect(first).toMatchObject({ calls: 3, money: 0.6 });
  expect(await take(3, 0.6)).toBe('money');
  expect(await readExploration(store, 'desk')).toEqual({ asked: 3, askedThisHour: 3, money: 0.6 });
  await returnAllowance(store, 'desk', { ...first, calls: 1, money: 0.5 });
  const { money, ...counts } = await readExploration(store, 'desk');
  expect(counts).toEqual({ asked: 2, askedThisHour: 2 });
  expect(money).toBeCloseTo(0.1);
  expect(await take(8, 0.6)).toMatchObject({ calls: 8 });
  expect(await take(1, 0)).toBe('per-hour');
  expect(await take(20, 0, { perHour: 10, moneyPerDay: 9 })).toBe('per-hour');
  expect(await takeAllowance(store, 'other', { calls: 3, money: 2 }, limits)).toBe('money');
});

it('gateways that take at the same time do not go over the limit together', async () => {
  const store = await withStore();
  const taken = await Promise.all(
    Array.from({ length: 12 }, () => takeAllowance(store, 'desk', { calls: 1, money: 0.3 }, limits)),
  );
  expect(taken.filter((one) => typeof one !== 'string')).toHaveLength(3);
  expect((await readExploration(store, 'desk')).asked).toBe(3);
});

it('another hour has calls of its own, another day money of its own', async () => {
  const store = await withStore();
  const take = () => takeAllowance(store, 'desk', { calls: 10, money: 1 }, { perHour: 10, moneyPerDay: 2 });
  await take();
  expect(await take()).toBe('per-hour');
  await store.pool.query('update pawl.exploration set hour = (hour + 1) % 24');
  expect(await take()).toMatchObject({ calls: 10 });
  await store.pool.query('update pawl.exploration set hour = (hour + 1) % 24');
  expect(await take()).toBe('money');
  await store.pool.query('update pawl.exploration set day = day - 1');
  expect(await take()).toMatchObject({ money: 1 });
});
