import { expect, test } from 'vitest';
import { giveConsent, listConsents, readConsent, withdrawConsent } from './consents.ts';
import { withStore } from './test-store.ts';

const at = (hour: number) => new Date(Date.UTC(2026, 4, 20, hour));

test('consent is given, kept at its first date, withdrawn, and given anew', async () => {
  const store = await withStore();
  expect(await readConsent(store, 'desk', 'ann')).toBeNull();
  expect(await giveConsent(store, 'desk', 'ann', at(1))).toMatchObject({ now: 'given', givenAt: at(1) });
  expect(await giveConsent(store, 'desk', 'ann', at(2))).toMatchObject({ now: 'given', givenAt: at(1) });
  expect(await withdrawConsent(store, 'desk', 'ann', at(3))).toMatchObject({ now: 'withdrawn', withdrawnAt: at(3) });
  expect(await withdrawConsent(store, 'desk', 'ann', at(4))).toMatchObject({ now: 'withdrawn', withdrawnAt: at(3) });
  expect(await giveConsent(store, 'desk', 'ann', at(5))).toMatchObject({
    now: 'given',
    givenAt: at(5),
    withdrawnAt: null,
  });
  expect((await readConsent(store, 'desk', 'ann'))?.now).toBe('given');
  expect(await readConsent(store, 'shop', 'ann')).toBeNull();
});

test('messages that come late do not undo newer ones', async () => {
  const store = await withStore();
  await withdrawConsent(store, 'desk', 'ann', at(3));
  expect(await giveConsent(store, 'desk', 'ann', at(2))).toMatchObject({ now: 'withdrawn', withdrawnAt: at(3) });
  await giveConsent(store, 'desk', 'bob', at(3));
  expect(await withdrawConsent(store, 'desk', 'bob', at(2))).toMatchObject({ now: 'given', givenAt: at(3) });
});

test('a list goes by user id, page by page', async () => {
  const store = await withStore();
  for (const user of ['cid', 'ann', 'bob']) await giveConsent(store, 'desk', user, at(1));
  await giveConsent(store, 'shop', 'dan', at(1));
  const first = await listConsents(store, { agent: 'desk', limit: 2 });
  expect(first.map(({ user }) => user)).toEqual(['ann', 'bob']);
  const second = await listConsents(store, { agent: 'desk', limit: 2, after: 'bob' });
  expect(second.map(({ user }) => user)).toEqual(['cid']);
});
