/**
 * Ids that callers choose (users, business keys, trajectories) made fit to store. One that is itself personal data, or
 * too long for a key, becomes a keyed hash: still the same id for the same person, but nobody without this
 * installation's secret can turn it back or find out by guessing. Everything that stores or looks up such an id uses
 * this same function, so both sides agree.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { access, link, mkdir, readFile, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hasPersonalData } from './redact/redact.ts';

export const MAX_ID = 256;

export function personId(raw: string, secret: string): string {
  if (raw.length <= MAX_ID && !hasPersonalData(raw)) return raw;
  return `u_${createHmac('sha256', secret).update(raw).digest('base64url').slice(0, 27)}`; // 162 bits
}

/** The installation's secret, made at the first start, readable by its owner only. */
export async function loadSecret(home: string): Promise<string> {
  const path = join(home, 'secret');
  await mkdir(home, { recursive: true, mode: 0o700 });
  // Written aside and linked into place: of two starts at once one wins, and nobody reads half a secret.
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    await access(path);
  } catch {
    await writeFile(draft, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flush: true });
    await link(draft, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    await unlink(draft);
  }
  const secret = (await readFile(path, 'utf8')).trim();
  if (secret.length < 32) {
    throw new Error(`${path} holds no secret. Delete it to have a new one made; hashed user ids will then change.`);
  }
  return secret;
}
