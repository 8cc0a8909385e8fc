import { expect, test } from 'vitest';
import { ConfigError } from '../errors.ts';
import { startOpening } from './opening.ts';
import type { Store } from './postgres.ts';

const store = (close = async () => {}) => ({ close }) as Store;

test('tries until the database is there, and says what was wrong meanwhile', async () => {
  const answers = [new Error('refused'), new Error('refused'), new Error('recovering'), store()];
  const said: string[] = [];
  const opening = startOpening(
    async () => {
      const next = answers.shift()!;
      if (next instanceof Error) throw next;
      return next;
    },
    { onProblem: (problem) => said.push(problem), firstWaitMs: 1 },
  );
  await opening.tried;
  expect([opening.store, opening.problem]).toEqual([null, 'refused']);
  expect(await opening.opened).toBe(opening.store);
  expect(opening.problem).toBeNull();
  expect(said).toEqual(['refused', 'recovering']);
});

test('settings that only a person can change end the first attempt, and later ones not', async () => {
  const wrong = () => Promise.reject(new ConfigError('too old'));
  await expect(startOpening(wrong).opened).rejects.toThrow('too old');
  let attempt = 0;
  const later = startOpening(
    async () => {
      if (attempt++ === 2) return store();
      throw attempt === 1 ? new Error('refused') : new ConfigError('too old');
    },
    { firstWaitMs: 1 },
  );
  await later.opened;
  expect(attempt).toBe(3);
});

test('closed during an attempt it gives the attempt up, and closes what still comes of it', async () => {
  let aborted = false;
  let closed = false;
  const opening = startOpening(
    (signal) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          aborted = true;
          resolve(
            store(async () => {
              closed = true;
            }),
          );
        });
      }),
  );
  await opening.close();
  expect([aborted, closed, opening.store]).toEqual([true, true, null]);
  await expect(opening.opened).rejects.toThrow('Pawl is stopping.');
});
