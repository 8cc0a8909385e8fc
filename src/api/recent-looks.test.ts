import { expect, it } from 'vitest';
import { recentLooks } from './recent-looks.ts';

const started = () => {
  let now = 0;
  let looks = 0;
  const look = recentLooks<number>(() => now);
  return { look, next: async () => ++looks, wait: (ms: number) => (now += ms) };
};

it('a look soon after another gets the same answer, and one a little later gets it while it is looked again', async () => {
  const { look, next, wait } = started();
  expect(await look('a', next)).toEqual({ value: 1, at: new Date(0) });
  wait(29_000);
  expect(await look('a', next)).toMatchObject({ value: 1 });
  expect(await look('b', next)).toMatchObject({ value: 2 });
  wait(2_000);
  expect(await look('a', next)).toMatchObject({ value: 1 });
  await Promise.resolve();
  expect(await look('a', next)).toEqual({ value: 3, at: new Date(31_000) });
});

it('an answer of more than ten minutes ago is not given', async () => {
  const { look, next, wait } = started();
  await look('a', next);
  wait(601_000);
  expect(await look('a', next)).toEqual({ value: 2, at: new Date(601_000) });
});

it('who looks while somebody looks waits for the same', async () => {
  const { look, next } = started();
  expect((await Promise.all([look('a', next), look('a', next)])).map(({ value }) => value)).toEqual([1, 1]);
});

it('a look that fails is not held', async () => {
  const { look, next } = started();
  await expect(look('a', async () => Promise.reject(new Error('gone')))).rejects.toThrow('gone');
  expect(await look('a', next)).toMatchObject({ value: 1 });
});

it('holds a few and no more', async () => {
  const { look, next } = started();
  for (let i = 0; i < 21; i++) await look(`key ${i}`, next);
  expect(await look('key 20', next)).toMatchObject({ value: 21 });
  expect(await look('key 0', next)).toMatchObject({ value: 22 });
});
