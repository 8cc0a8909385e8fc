import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { hashedId } from '../collect/person.ts';
import { giveConsent, readConsent, withdrawConsent } from './consents.ts';
import { entry, noon } from './fixtures.ts';
import { connectStore, type Store } from './postgres.ts';
import { writeEntries } from './record.ts';
import { cachedSecret, installationSecret } from './secret.ts';
import { withStore } from './test-store.ts';

const newHome = (secret?: string) => {
  const home = mkdtempSync(join(tmpdir(), 'pawl-secret-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  if (secret !== undefined) writeFileSync(join(home, 'secret'), `${secret}\n`);
  return home;
};
const [ours, theirs] = ['a'.repeat(43), 'b'.repeat(43)];

describe('the secret of an installation', () => {
  test('is made once, also by several homes that open one database at once, and each keeps a copy for its owner only', async () => {
    const store = await withStore();
    const homes = [newHome(), newHome(), newHome()];
    const secrets = await Promise.all(homes.map((home) => installationSecret(store, home)));
    expect(new Set(secrets).size).toBe(1);
    expect(secrets[0]).toHaveLength(43);
    for (const home of homes) {
      expect(await cachedSecret(home)).toBe(secrets[0]);
      expect(statSync(join(home, 'secret')).mode & 0o777).toBe(0o600);
    }
    expect(await cachedSecret(newHome())).toBeNull();
  });

  test('is brought along by a home that has one; the next home’s gives way to it and is kept aside, with one warning', async () => {
    const store = await withStore();
    const said: string[] = [];
    const warn = (message: string) => said.push(message);
    expect(await installationSecret(store, newHome(ours), { warn })).toBe(ours);
    const other = newHome(theirs);
    expect(await installationSecret(store, other, { warn })).toBe(ours);
    expect(await installationSecret(store, other, { warn })).toBe(ours);
    expect(said).toEqual([expect.stringContaining('was not the database’s')]);
    expect(await cachedSecret(other)).toBe(ours);
    expect(readFileSync(join(other, 'secret.replaced'), 'utf8').trim()).toBe(theirs);
  });

  test('may be given for a new database, and one that contradicts the database is refused', async () => {
    const store = await withStore();
    expect(await installationSecret(store, newHome(theirs), { given: ours })).toBe(ours);
    await expect(installationSecret(store, newHome(), { given: theirs })).rejects.toThrow(/PAWL_SECRET is not/);
  });

  test('is not made anew because a copy is damaged: the database’s heals it, and without one the way out is said', async () => {
    const store = await withStore();
    await expect(installationSecret(store, newHome('short'))).rejects.toThrow(/holds no secret\. Delete it/);
    await installationSecret(store, newHome(ours));
    expect(await installationSecret(store, newHome('short'))).toBe(ours);
  });
});

describe('user ids that an earlier Pawl stored as they came', () => {
  const plain = ['u-17', '사용자 7'];
  const long = 'c'.repeat(100); // a key longer than a block of SHA-256 is hashed first

  const fill = async (store: Store) => {
    for (const user of plain) {
      await writeEntries(store, [
        entry.turn({ trajectory: `of ${user}`, user }),
        entry.turn({ trajectory: `numbered ${user}`, user: null }),
        entry.signal({ identity: JSON.stringify(['feedback', user]), user }),
      ]);
      await giveConsent(store, 'desk', user, new Date(noon));
      // That Pawl kept requests in a column.
      const requests = {
        [`of ${user}`]: { user, safety_identifier: user, metadata: { user_id: user } },
        [`numbered ${user}`]: { user: 7 },
      };
      for (const [trajectory, request] of Object.entries(requests))
        await store.pool.query('update pawl.turns set frame = null, request = $2 where trajectory = $1', [
          trajectory,
          JSON.stringify(request),
        ]);
    }
  };
  const dump = async (store: Store) => {
    const tables = ['turns', 'trajectories', 'signals', 'consent'];
    const rows = await Promise.all(tables.map((table) => store.pool.query(`select user_id from pawl.${table}`)));
    return rows.map(({ rows: found }) => [...new Set(found.map(({ user_id }) => user_id))].sort());
  };

  test.each([ours, long])('are hashed as recording hashes them, everywhere, once', async (secret) => {
    const store = await withStore();
    await fill(store);
    await installationSecret(store, newHome(), { given: secret });
    const hashes = plain.map((user) => hashedId(user, secret)).sort();
    const withNobody = [null, ...hashes];
    expect(await dump(store)).toEqual([withNobody, withNobody, hashes, hashes]);
    const requests = await store.pool.query('select request from pawl.turns where user_id = $1', [hashes[0]]);
    expect(requests.rows).toEqual([
      { request: { user: hashes[0], safety_identifier: hashes[0], metadata: { user_id: hashes[0] } } },
    ]);
    const numbered = await store.pool.query(`select distinct request from pawl.turns where user_id is null`);
    expect(numbered.rows).toEqual([{ request: { user: 7 } }]);
    const identities = await store.pool.query('select identity from pawl.signals');
    expect(identities.rows.map(({ identity }) => identity).sort()).toEqual(
      plain.map((user) => hashedId(JSON.stringify(['feedback', user]), secret)).sort(),
    );
    await installationSecret(store, newHome(), { given: secret });
    expect(await dump(store)).toEqual([withNobody, withNobody, hashes, hashes]);
  });

  test('are left as they are, all of them, when hashing fails half-way, and are hashed the next time', async () => {
    const store = await withStore();
    await fill(store);
    const before = await dump(store);
    await store.pool.query(
      `create function pawl.fail() returns trigger language plpgsql as $$ begin raise 'no'; end $$;
       create trigger fail before delete on pawl.consent execute function pawl.fail()`,
    );
    await expect(installationSecret(store, newHome(), { given: ours })).rejects.toThrow(/Hashing user ids/);
    expect(await dump(store)).toEqual(before);
    await store.pool.query('drop trigger fail on pawl.consent');
    await installationSecret(store, newHome());
    expect((await dump(store))[3]).toEqual(plain.map((user) => hashedId(user, ours)).sort());
  });

  test('a person who is there twice, as typed and as a hash, is one person afterwards, and the later word stands', async () => {
    const store = await withStore();
    const at = (minute: number) => new Date(noon + minute * 60_000);
    const hash = (user: string) => hashedId(user, ours);
    await giveConsent(store, 'desk', 'lee', at(1));
    await withdrawConsent(store, 'desk', hash('lee'), at(2));
    await withdrawConsent(store, 'desk', 'kim', at(1));
    await giveConsent(store, 'desk', hash('kim'), at(2));
    await giveConsent(store, 'desk', 'ann', at(1));
    await giveConsent(store, 'desk', hash('ann'), at(2));
    await writeEntries(store, [
      entry.signal({ identity: 'vote', value: 0 }),
      entry.signal({ identity: hash('vote'), value: 1 }),
    ]);
    await installationSecret(store, newHome(), { given: ours });
    expect(await readConsent(store, 'desk', hash('lee'))).toMatchObject({ now: 'withdrawn', withdrawnAt: at(2) });
    expect(await readConsent(store, 'desk', hash('kim'))).toMatchObject({ now: 'given', givenAt: at(2) });
    expect(await readConsent(store, 'desk', hash('ann'))).toMatchObject({ now: 'given', givenAt: at(1) });
    expect((await store.pool.query('select value from pawl.signals')).rows).toEqual([{ value: 1 }]);
  });

  test('two that open at once hash once', async () => {
    const store = await withStore();
    await fill(store);
    const second = await connectStore(store.url, { poolSize: 1 });
    await Promise.all([installationSecret(store, newHome(ours)), installationSecret(second, newHome(theirs))]);
    await second.close();
    const secret = await installationSecret(store, newHome());
    expect((await dump(store))[3]).toEqual(plain.map((user) => hashedId(user, secret)).sort());
  });
});
