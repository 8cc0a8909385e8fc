import { expect, test } from 'vitest';
import { createTurnstile } from './turnstile.ts';

test('only so many are inside at once, and everybody gets in', async () => {
  const through = createTurnstile(2, 100);
  let inside = 0;
  let most = 0;
  const done = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      through(async () => {
        inside++;
        most = Math.max(most, inside);
        await new Promise(setImmediate);
        inside--;
        return i;
      }),
    ),
  );
  expect([most, inside]).toEqual([2, 0]);
  expect(done).toEqual(Array.from({ length: 20 }, (_, i) => i));
});

test('when too many wait the next is told to come back, and a failure leaves its place', async () => {
  const through = createTurnstile(1, 1);
  let leave = () => {};
  const first = through(() => new Promise<void>((resolve) => (leave = resolve)));
  const second = through(async () => {
    throw new Error('broken');
  });
  await expect(through(async () => {})).rejects.toMatchObject({ status: 503, code: 'busy' });
  leave();
  await first;
  await expect(second).rejects.toThrow('broken');
  await expect(through(async () => 'in')).resolves.toBe('in');
});
