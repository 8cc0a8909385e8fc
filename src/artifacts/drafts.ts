/**
 * Names for what is being written beside artifacts, and the end of what nobody writes any more. A folder may be shared by
 * machines, so a name says on which of them its process runs: only there can be told whether it still does.
 */
import { createHash, randomBytes } from 'node:crypto';
import { readdir, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { isAlive } from '../durable.ts';

const here = createHash('sha256').update(hostname()).digest('hex').slice(0, 8);
const staleMs = 24 * 60 * 60 * 1000;

export const draftName = (): string => `.draft-${here}-${process.pid}-${randomBytes(6).toString('hex')}`;

/** What killed processes of this machine left, and what is a day old. */
export async function dropStaleDrafts(folder: string, now: number): Promise<number> {
  let dropped = 0;
  for (const name of await readdir(folder).catch(() => [])) {
    // A folder that the engine writes has a second dot before the name of what it is to become.
    const [, machine, pid] = /^\.+draft-([0-9a-f]{8})-(\d+)-/.exec(name) ?? [];
    if (machine === undefined) continue;
    const path = join(folder, name);
    const found = await stat(path).catch(() => null);
    if (found === null) continue;
    const isAbandoned = machine === here && !isAlive(Number(pid));
    if (!isAbandoned && now - found.mtimeMs < staleMs) continue;
    await rm(path, { recursive: true, force: true });
    dropped++;
  }
  return dropped;
}
