/** What files need that must outlast the process that writes them: names that stay, and a way to tell whose owner is gone. */
import { open } from 'node:fs/promises';

/** Makes a created or renamed name last. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return; // a folder cannot be opened there; its journal orders renames
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Whether a process of this number runs. */
export function isAlive(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid < 1) return false; // 0 and below would mean groups of processes
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'; // it is somebody else's
  }
}
