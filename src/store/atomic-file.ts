/**
 * A small file that is either the old one or the new one, whatever happens in between: written aside under a name nobody can
 * have put there, flushed, renamed into place, and the folder flushed too. Readable by its owner only.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

export const writeAtomically = (path: string, text: string): void => {
  const aside = `${path}.${process.pid}.${randomBytes(6).toString('hex')}`;
  try {
    const file = openSync(aside, 'wx', 0o600); // fails on anything that is there, a link too
    try {
      writeSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(aside, path);
  } catch (error) {
    rmSync(aside, { force: true });
    throw error;
  }
  if (process.platform === 'win32') return; // folders cannot be opened there
  const folder = openSync(dirname(path), 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
};
