/**
 * The keys and routes that the database last told, in `<home>/last-known.json`: with them a gateway that is started again
 * while its database is away answers as it did before. Keys are there by the hash of their token, never the token. The file
 * is replaced when what it says changes; its modification time says when the database last confirmed it.
 *
 * A file that is damaged counts as none. What it cannot know is what was revoked since; the ring learns that with the first
 * word from the database.
 */
import { createHash } from 'node:crypto';
import { readFileSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { writeAtomically } from '../store/atomic-file.ts';
import type { StoredRoute } from '../store/rollouts.ts';
import type { ClientKey } from './keys.ts';

type Known = { readonly keys: ReadonlyMap<string, ClientKey>; readonly routes: readonly StoredRoute[] };

export type LastKnown = {
  readonly keys: ReadonlyMap<string, ClientKey>;
  readonly routes: readonly StoredRoute[];
  /** When the database last said so, in ms since epoch; null when it never did. */
  readonly asOf: number | null;
  keep(news: Partial<Known>): void;
};

const confirmEveryMs = 60_000;

const name = z.string().min(1);
/** Loose: what else a key or a release carries is of this program's making, which the checksum vouches for. */
const fileSchema = z.object({
  keys: z.array(
    z.tuple([
      z.string().regex(/^[0-9a-f]{64}$/),
      z.looseObject({
        ...{ id: name, agent: name, name, origin: name },
        scopes: z.array(name),
        rateLimit: z.number().nullable(),
      }),
    ]),
  ),
  routes: z.array(
    z.looseObject({ agent: name, aliases: z.array(name), release: z.looseObject({ id: name, upstream: name }) }),
  ),
});

const checksumOf = (text: string): string => createHash('sha256').update(text).digest('hex');
const textOf = ({ keys, routes }: Known): string =>
  JSON.stringify({ keys: [...keys].sort(([a], [b]) => (a < b ? -1 : 1)), routes });

function readKnown(path: string): { text: string; known: Known; asOf: number } | null {
  let file: string;
  let asOf: number;
  try {
    file = readFileSync(path, 'utf8');
    asOf = statSync(path).mtimeMs;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  const [checksum, text = ''] = file.split('\n');
  if (checksum !== checksumOf(text)) throw new Error('its checksum is wrong');
  const read: unknown = JSON.parse(text);
  fileSchema.parse(read);
  const { keys, routes } = read as { keys: [string, ClientKey][]; routes: StoredRoute[] };
  return { text, asOf, known: { keys: new Map(keys), routes } };
}

export function openLastKnown(home: string, warn: (message: string) => void): LastKnown {
  const path = join(home, 'last-known.json');
  let known: Known = { keys: new Map(), routes: [] };
  let written = '';
  let asOf: number | null = null;
  try {
    const found = readKnown(path);
    if (found !== null) ({ known, text: written, asOf } = found);
  } catch (error) {
    warn(`${path} cannot be used: ${error instanceof Error ? error.message : String(error)}. It is written anew.`);
  }
  let confirmedAt = asOf ?? 0;
  return {
    get keys() {
      return known.keys;
    },
    get routes() {
      return known.routes;
    },
    get asOf() {
      return asOf;
    },
    keep(news) {
      known = { ...known, ...news };
      const now = Date.now();
      asOf = now;
      const text = textOf(known);
      try {
        if (text !== written) writeAtomically(path, `${checksumOf(text)}\n${text}\n`);
        else if (now - confirmedAt > confirmEveryMs) utimesSync(path, now / 1000, now / 1000);
        else return;
        written = text;
        confirmedAt = now;
      } catch (error) {
        written = ''; // tried again with the next word from the database
        warn(`${path} cannot be written: ${error instanceof Error ? error.message : String(error)}.`);
      }
    },
  };
}
