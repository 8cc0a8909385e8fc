/** Holds the database's server still. One that an earlier fault killed may not be back yet: then it is waited for. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { HeldDatabase } from '../pawl.ts';
import type { Stage } from './stage.ts';

const attempts = 300;

export async function holdLiving(database: Stage['database']): Promise<HeldDatabase> {
  for (let attempt = 1; ; attempt++) {
    try {
      return database.hold();
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException; // its file names a process that is gone, or there is no file
      if ((code !== 'ESRCH' && code !== 'ENOENT') || attempt === attempts) throw error;
      await sleep(100);
    }
  }
}
