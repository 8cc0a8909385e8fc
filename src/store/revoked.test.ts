import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { JournalEntry } from '../collect/signal.ts';
import { giveConsent } from './consents.ts';
import { entry } from './fixtures.ts';
import { createKey, listKeys, revokeKey } from './keys.ts';
import { encodeLine, lineOf } from './line.ts';
import { writeLines } from './record.ts';
import { readSignedLine, signLine } from './signed-line.ts';
import { withStore } from './test-store.ts';
import { readTrajectory } from './trajectories.ts';

const signed = (one: JournalEntry, key: string | null) => readSignedLine(Buffer.from(signLine(encodeLine(one), key)));

test('a signed line is the same line, and says whose key it came with', () => {
  const key = randomUUID();
  for (const one of [entry.turn({}), entry.signal({})]) {
    expect(signed(one, key)).toEqual({ ...lineOf(one), by: key });
    expect(signed(one, null)).toEqual(lineOf(one));
  }
});

test('what came with a key counts by what the key was when it came, whenever it is written', async () => {
  const store = await withStore();
  const { key } = await createKey(store, { agent: 'desk', name: 'leaver' });
  const { key: other } = await createKey(store, { agent: 'desk', name: 'stays' });
  await revokeKey(store, key.id);
  const at = (await listKeys(store)).find(({ id }) => id === key.id)!.revokedAt!.getTime();
  await giveConsent(store, 'desk', 'ann', new Date(at - 60_000));
  const turn = (trajectory: string, startedAt: number) =>
    entry.turn({ agent: 'desk', user: 'ann', trajectory, startedAt });
  const vote = (identity: string, receivedAt: number, says = receivedAt) =>
    entry.signal({ agent: 'desk', identity, at: says, receivedAt, target: { kind: 'trajectory', id: 'before' } });
  const { inserted, refused } = await writeLines(store, [
    signed(turn('before', at - 1000), key.id),
    signed(turn('after', at + 1), key.id),
    signed(turn('other', at + 1), other.id),
    signed(turn('unknown', at + 1), randomUUID()),
    signed(turn('unsigned', at + 1), null),
    signed(vote('in time', at - 1), key.id),
    signed(vote('dated back', at + 1, at - 1000), key.id),
    signed(vote('of another', at + 1), other.id),
  ]);
  expect(inserted).toBe(7);
  expect(refused).toEqual([
    { line: expect.anything(), error: `Its key ${key.id} had been revoked at ${new Date(at).toISOString()}.` },
  ]);
  const consentOf = async (id: string) => (await readTrajectory(store, id))!.trajectory.consent;
  const stamps = ['before', 'after', 'other', 'unknown', 'unsigned'].map(consentOf);
  expect(await Promise.all(stamps)).toEqual(['given', 'withdrawn', 'given', 'withdrawn', 'given']);
});
