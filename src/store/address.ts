/**
 * Where the Pawl of a home listens, for commands that want to go through its door: `<home>/address.json`. It is believed only
 * while the process that has the folder is the one that wrote it; what it leaves behind does no harm.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { writeAtomically } from './atomic-file.ts';
import { homeHolder } from './lock.ts';

const addressSchema = z.strictObject({ url: z.url({ protocol: /^http$/ }), instance: z.string() });

const pathIn = (home: string): string => join(home, 'address.json');

export const keepAddress = (home: string, address: z.infer<typeof addressSchema>): void =>
  writeAtomically(pathIn(home), `${JSON.stringify(address)}\n`);

/** null when no Pawl serves this home; a command that only holds its folder for a moment has no address. */
export function servingAddress(home: string): string | null {
  const holder = homeHolder(home);
  if (holder === null) return null;
  let text: string;
  try {
    text = readFileSync(pathIn(home), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  const { url, instance } = addressSchema.parse(JSON.parse(text));
  if (instance !== holder.instance) return null;
  return reachable(url);
}

/** What listens on every address is reached at this one. */
export const reachable = (url: string): string =>
  url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
