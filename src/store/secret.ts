/**
 * The secret that user ids are hashed with. It belongs to the installation: the first opener of a database puts it there,
 * and whoever opens that database later uses what is there, from whatever home. A home keeps a copy that only its owner can
 * read, so that a gateway hashes alike while its database is away.
 */
import { createHash, randomBytes } from 'node:crypto';
import { readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError } from '../errors.ts';
import { writeAtomically } from './atomic-file.ts';
import { makeHome } from './lock.ts';
import { type Store, storeError } from './postgres.ts';

const shortest = 32;
const copyPath = (home: string): string => join(home, 'secret');

type Installation = { readonly secret: string; readonly users_hashed_at: Date | null };

/** The copy in a home folder; null: it has none. */
export async function cachedSecret(home: string): Promise<string | null> {
  const secret = await readFile(copyPath(home), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (secret !== null && secret.trim().length < shortest)
    throw new ConfigError(
      `${copyPath(home)} holds no secret. Delete it: the database’s takes its place, and where there is none a new one is made.`,
    );
  return secret?.trim() ?? null;
}

/**
 * What the database has; if it has none, `given` (PAWL_SECRET), else the home's own, else a new one is put there. Ids that an
 * earlier Pawl stored as they came are hashed before this returns.
 */
export async function installationSecret(
  store: Store,
  home: string,
  { given, warn = () => {} }: { readonly given?: string | undefined; readonly warn?: (message: string) => void } = {},
): Promise<string> {
  const there = (await readInstallation(store)) ?? (await putSecret(store, given ?? (await cachedSecret(home))));
  const { secret } = there;
  if (given !== undefined && given !== secret)
    throw new ConfigError(
      'PAWL_SECRET is not the secret that this database’s user ids are hashed with. Take it out of the settings: the database knows its own. With another secret nobody’s consent would be found again.',
    );
  if (there.users_hashed_at === null) await hashStoredUsers(store, secret);
  const copy = await cachedSecret(home).catch(() => '');
  if (copy === secret) return secret;
  if (copy !== null) {
    await rename(copyPath(home), `${copyPath(home)}.replaced`);
    warn(
      `The secret in ${home} was not the database’s. User ids are hashed with the database’s from now on; the old one is kept as secret.replaced.`,
    );
  }
  makeHome(home);
  writeAtomically(copyPath(home), `${secret}\n`);
  return secret;
}

async function readInstallation(store: Store): Promise<Installation | null> {
  const { rows } = await store.pool
    .query<Installation>('select secret, users_hashed_at from pawl.installation')
    .catch((error) => {
      throw storeError(error, 'Reading the secret of this installation');
    });
  return rows[0] ?? null;
}

async function putSecret(store: Store, own: string | null): Promise<Installation> {
  await store.pool
    .query('insert into pawl.installation (secret) values ($1) on conflict do nothing', [
      own ?? randomBytes(32).toString('base64url'),
    ])
    .catch((error) => {
      throw storeError(error, 'Keeping the secret of this installation');
    });
  return (await readInstallation(store))!;
}

/** HMAC's key with its inner and outer padding; PostgreSQL has SHA-256 and no HMAC. */
function hmacKeys(secret: string): readonly [inner: Buffer, outer: Buffer] {
  const bytes = Buffer.from(secret);
  const key = bytes.length > 64 ? createHash('sha256').update(bytes).digest() : bytes;
  const padded = (padding: number) => Buffer.from(Array.from({ length: 64 }, (_, i) => (key[i] ?? 0) ^ padding));
  return [padded(0x36), padded(0x5c)];
}

/** $1 and $2 are HMAC's keys. An id that has the form of a hash is one. */
const isPlain = (id: string): string => `${id} !~ '^u_[A-Za-z0-9_-]{27}$'`;
const hashed = (id: string): string => `pawl.hashed_id(${id}, $1, $2)`;
/** `path` as PostgreSQL writes one: a name, or names with commas between. */
const hashField = (
  path: string,
): string => `update pawl.turns set request = jsonb_set(request, '{${path}}', to_jsonb(${hashed(`request#>>'{${path}}'`)}))
  where jsonb_typeof(request#>'{${path}}') = 'string' and ${isPlain(`request#>>'{${path}}'`)}`;

/**
 * Where one person is there twice, as typed and as a hash (a recognizer came in between), what was said later stands; the rules
 * are those of consents.ts.
 */
const hashing = [
  `update pawl.turns set user_id = ${hashed('user_id')} where ${isPlain('user_id')}`,
  hashField('user'),
  hashField('safety_identifier'),
  hashField('metadata,user_id'),
  `update pawl.trajectories set user_id = ${hashed('user_id')} where ${isPlain('user_id')}`,
  `delete from pawl.signals s using pawl.signals other
   where ${isPlain('s.identity')} and other.agent = s.agent and other.identity = ${hashed('s.identity')}`,
  `update pawl.signals set identity = ${hashed('identity')} where ${isPlain('identity')}`,
  `update pawl.signals set user_id = ${hashed('user_id')} where ${isPlain('user_id')}`,
  `insert into pawl.consent as c (agent, user_id, given_at, withdrawn_at)
   select agent, ${hashed('user_id')}, given_at, withdrawn_at from pawl.consent where ${isPlain('user_id')}
   on conflict (agent, user_id) do update set
     given_at = case
       when greatest(c.withdrawn_at, excluded.withdrawn_at) is null then least(c.given_at, excluded.given_at)
       else greatest(c.given_at, excluded.given_at) end,
     withdrawn_at = case
       when greatest(c.given_at, excluded.given_at) > greatest(c.withdrawn_at, excluded.withdrawn_at) then null
       else greatest(c.withdrawn_at, excluded.withdrawn_at) end`,
];
const dropPlainConsent = `delete from pawl.consent where ${isPlain('user_id')}`;

/** All of it or nothing, once: whoever comes meanwhile waits at the row's lock and finds it done. */
async function hashStoredUsers(store: Store, secret: string): Promise<void> {
  const client = await store.pool.connect().catch((error) => {
    throw storeError(error, 'Connecting to the database');
  });
  let broken = true;
  try {
    // However much there is: a limit for ordinary statements would make this fail at every start.
    await client.query('begin; set local statement_timeout = 0');
    const { rows } = await client.query<Installation>(
      'select secret, users_hashed_at from pawl.installation for update',
    );
    if (rows[0]?.users_hashed_at === null) {
      const keys = hmacKeys(secret);
      for (const statement of hashing) await client.query(statement, [...keys]);
      await client.query(dropPlainConsent);
      await client.query('update pawl.installation set users_hashed_at = now()');
    }
    await client.query('commit');
    broken = false;
  } catch (error) {
    broken = !(await client.query('rollback').then(
      () => true,
      () => false,
    ));
    throw storeError(error, 'Hashing user ids that were stored as they came');
  } finally {
    client.release(broken);
  }
}
