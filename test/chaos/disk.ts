/**
 * A folder whose disk can be made full and given space again: a tmpfs of its own where we may mount one. Fullness is the
 * file system's size set to what it holds, so nothing has to be written to fill it.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, statfsSync } from 'node:fs';

export type Disk = {
  readonly folder: string;
  fill(): void;
  empty(): void;
  /** Unmounts; what was on it is gone. */
  remove(): void;
};

/** Null where mounting is not allowed. */
export function mountDisk(folder: string, bytes: number): Disk | null {
  mkdirSync(folder, { recursive: true });
  const size = (n: number) => `size=${n}`;
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `${size(bytes)},mode=0700`, 'pawl-chaos', folder]);
  if (mounted.status !== 0) return null;
  const resize = (n: number) => execFileSync('mount', ['-o', `remount,${size(n)}`, folder], { stdio: 'pipe' });
  return {
    folder,
    fill() {
      // Writers go on meanwhile, and a size below what is used is refused: then it is asked for again.
      for (let attempt = 0; ; attempt++) {
        const { blocks, bfree, bsize } = statfsSync(folder);
        try {
          resize(Math.max(1, blocks - bfree + attempt) * bsize);
          return;
        } catch (error) {
          if (attempt === 50) throw error;
        }
      }
    },
    empty: () => void resize(bytes),
    remove() {
      if (spawnSync('umount', [folder]).status !== 0) spawnSync('umount', ['--lazy', folder]);
    },
  };
}
