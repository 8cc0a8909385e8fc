import pino from 'pino';
import { expect, it } from 'vitest';
import { createKey, listKeys } from '../store/keys.ts';
import { withStore } from '../store/test-store.ts';
import type { ClientKey } from './keys.ts';
import { watchKeys } from './watch-keys.ts';

it('tells nothing new of a key that is used, so that nothing is written to disk for it', async () => {
  const store = await withStore();
  const { key } = await createKey(store, { agent: 'desk', name: 'first' });
  const told: ReadonlyMap<string, ClientKey>[] = [];
  const ring = {
    replace: (keys: ReadonlyMap<string, ClientKey>) => void told.push(keys),
    takeUsed: () => new Map([[key.id, new Date(Date.now() + told.length * 1000)]]),
  };
  for (let i = 0; i < 2; i++) await (await watchKeys(store, ring, pino({ level: 'silent' }), `gateway ${i}`)).close();
  expect((await listKeys(store))[0]!.lastUsedAt).not.toBeNull();
  expect(told[0]!.size).toBe(1);
  for (const one of told) expect(one).toEqual(told[0]);
});
