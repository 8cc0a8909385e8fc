/**
 * `rejected.jsonl`: what the database will never take, with the reason, for a person to look at. It holds what the journal
 * held, so it is as private. Whatever else has its name is not written to: the next name is taken.
 */
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Line } from '../store/line.ts';

/** All that is kept; what is refused beyond it is counted alone. */
const MOST_BYTES = 256 * 1024 * 1024;
const names = ['rejected.jsonl', ...Array.from({ length: 9 }, (_, i) => `rejected-${i + 2}.jsonl`)];

/** False: there was no room for it. Throws what the file system throws. */
export async function keepRejected(folder: string, line: Line, reason: string): Promise<boolean> {
  const { kind, json, request, choices } = line;
  const facts = JSON.stringify({ at: new Date().toISOString(), reason, kind });
  const documents = kind === 'turn' ? `,"request":${request},"choices":${choices}` : '';
  const text = `${facts.slice(0, -1)},"entry":${json}${documents}}\n`;
  const { file, size } = await openRejected(folder);
  try {
    if (size + text.length > MOST_BYTES) return false;
    await file.appendFile(text);
    await file.datasync();
    return true;
  } finally {
    await file.close();
  }
}

async function openRejected(folder: string): Promise<{ file: FileHandle; size: number }> {
  const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
  let problem: unknown = null;
  for (const name of names) {
    try {
      const file = await open(join(folder, name), O_APPEND | O_CREAT | O_WRONLY | O_NOFOLLOW | O_NONBLOCK, 0o600);
      const facts = await file.stat();
      if (facts.isFile()) return { file, size: facts.size };
      await file.close();
    } catch (error) {
      // A folder, a link, a pipe that nobody reads. Anything else is the disk's trouble and passes.
      if (!['EISDIR', 'ELOOP', 'ENXIO', 'EMLINK'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
      problem = error;
    }
  }
  throw problem ?? new Error(`None of ${names.join(', ')} in ${folder} is a file.`);
}

/** Files with refused entries, and about how many lines they have: counted up to a limit, never read whole. */
export async function countRejected(folder: string): Promise<{ entries: number; files: string[] }> {
  const files: string[] = [];
  let entries = 0;
  for (const name of (await readdir(folder)).filter((one) => names.includes(one)).sort()) {
    const path = join(folder, name);
    const facts = await lstat(path);
    if (!facts.isFile() || facts.size === 0) continue;
    files.push(path);
    const file = await open(path, 'r');
    try {
      const block = Buffer.alloc(1024 * 1024);
      for (let at = 0; at < MOST_BYTES; ) {
        const { bytesRead } = await file.read(block, 0, block.length, at);
        if (bytesRead === 0) break;
        at += bytesRead;
        for (let i = block.indexOf(10); i >= 0 && i < bytesRead; i = block.indexOf(10, i + 1)) entries++;
      }
    } finally {
      await file.close();
    }
  }
  return { entries, files };
}
