/**
 * The admin token: what opens /api and the dashboard. It is the one of the settings; without one there, a first start makes one
 * and shows it once, before it is kept, so that no token exists which nobody has seen; only its SHA-256 is kept, in
 * `<home>/admin.json`, readable by the owner alone. The token has 256 random bits, so a plain hash is enough.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigError } from '../errors.ts';
import { makeHome } from '../store/lock.ts';

const fileSchema = z.object({ sha256: z.string().regex(/^[0-9a-f]{64}$/) });

const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex');

const read = (path: string): string | null => {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  try {
    return fileSchema.parse(JSON.parse(text)).sha256;
  } catch (cause) {
    throw new ConfigError(
      `${path} holds no admin token hash. Remove the file and start Pawl again: it makes a new token.`,
      { cause },
    );
  }
};

/** The hash of the admin token that this home knows, or the settings; null: none. */
export const knownAdmin = (home: string, given?: string): string | null =>
  given === undefined ? read(join(home, 'admin.json')) : hashOf(given);

/** The hash of the admin token. One that is made now goes to `show` first. */
export async function ensureAdminToken(
  home: string,
  show: (token: string) => Promise<void>,
  given?: string,
): Promise<string> {
  if (given !== undefined) return hashOf(given);
  const path = join(home, 'admin.json');
  const known = read(path);
  if (known !== null) return known;
  makeHome(home);
  const token = `pawl_admin_${randomBytes(32).toString('base64url')}`;
  const hash = hashOf(token);
  await show(token);
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  writeFileSync(draft, `${JSON.stringify({ sha256: hash, createdAt: new Date().toISOString() })}\n`, { mode: 0o600 });
  try {
    // link(2) never overwrites: of two first starts at once, one makes the token and the other learns its hash.
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return read(path)!;
  } finally {
    rmSync(draft, { force: true });
  }
  return hash;
}

/** Whether an Authorization header carries the token with this hash; the time taken says nothing about it. */
export function isAdmin(authorization: string | undefined, hash: string): boolean {
  const token = /^Bearer +(\S{1,512})$/i.exec(authorization ?? '')?.[1];
  if (token === undefined) return false;
  return timingSafeEqual(Buffer.from(hashOf(token), 'hex'), Buffer.from(hash, 'hex'));
}
