/**
 * `rejected.jsonl`: what the database will never take, with the reason, for a person to look at. It holds what the journal
 * held, so it is as private. Whatever else has its name is not written to: the next name is taken.
 */
import { constants, createReadStream } from 'node:fs';
import { type FileHandle, lstat, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Line } from '../store/line.ts';

/** All that is kept; what is refused beyond it is counted alone. */
const MOST_BYTES = 256 * 1024 * 1024;
const names = ['rejected.jsonl', ...Array.from({ length: 9 }, (_, i) => `rejected-${i + 2}.jsonl`)];

/** False: there was no room for it. Throws what the file system throws. */
export async function keepRejected(folder: string, line: Line, reason: string): Promise<boolean> {
  const { kind, json, messages } = line;
  const facts = JSON.stringify({ at: new Date().toISOString(), reason, kind });
  const carried = kind === 'turn' ? `,"messages":[${messages.map(({ body }) => body).join(',')}]` : '';
  const text = `${facts.slice(0, -1)},"entry":${json}${carried}}\n`;
  for (;;) {
    const { file, size, path } = await openRejected(folder);
    try {
      if (size + text.length > MOST_BYTES) return false;
      await file.appendFile(text);
      await file.datasync();
      // Whoever thins the file out (below) renames it first: what was written to it since is written again.
      const [written, there] = [await file.stat(), await stat(path).catch(() => null)];
      if (there?.ino === written.ino) return true;
    } finally {
      await file.close();
    }
  }
}

const aside = (path: string): string => `${path}.old`;

/** Which of these lines go. */
export type Thinning = (lines: readonly RejectedLine[]) => Promise<readonly boolean[]>;

/**
 * Leaves out the lines that `goes` names; returns how many. Safe beside a process that appends, and when interrupted: the file is
 * renamed, what stays is appended to a new one, and the old one removed; an old one that is found was not finished. A line
 * may then be there twice, which is better than not at all. One at a time: the caller sees to that.
 */
export async function thinRejected(folder: string, goes: Thinning): Promise<number> {
  let gone = 0;
  for (const name of names) {
    const path = join(folder, name);
    if (await isFilled(aside(path))) gone += await moveKept(aside(path), path, goes);
    if (!(await hasSome(path, goes))) continue;
    await rename(path, aside(path));
    gone += await moveKept(aside(path), path, goes);
  }
  return gone;
}

async function hasSome(path: string, goes: Thinning): Promise<boolean> {
  if (await isFilled(path))
    for await (const lines of readRejected(path)) if ((await goes(lines)).includes(true)) return true;
  return false;
}

async function moveKept(from: string, to: string, goes: Thinning): Promise<number> {
  let gone = 0;
  const file = await open(to, 'a', 0o600);
  try {
    for await (const lines of readRejected(from)) {
      const verdicts = await goes(lines);
      const kept = lines.filter((_, i) => !verdicts[i]);
      gone += lines.length - kept.length;
      await file.appendFile(kept.map(({ text }) => `${text}\n`).join(''));
    }
    await file.datasync();
  } finally {
    await file.close();
  }
  await rm(from);
  return gone;
}

/** `at`: when it was refused; `line`: what was, null if it is not even an entry. */
export type RejectedLine = { readonly text: string; readonly at: number; readonly line: Line | null };

function rejectedLine(text: string): RejectedLine {
  try {
    const { at, kind, entry } = JSON.parse(text) as { at: string; kind: Line['kind']; entry: Record<string, unknown> };
    const refusedAt = Date.parse(at) || 0;
    const began = Number(entry.startedAt ?? refusedAt);
    const json = Buffer.from(JSON.stringify(entry));
    const line = { kind, agent: String(entry.agent), at: began, json, messages: [] };
    return { text, at: refusedAt, line };
  } catch {
    return { text, at: 0, line: null };
  }
}

const isFilled = async (path: string): Promise<boolean> => {
  const facts = await lstat(path).catch(() => null);
  return facts?.isFile() === true && facts.size > 0;
};

const linesAtOnce = 200;
const charactersAtOnce = 8 * 1024 * 1024;

async function* readRejected(path: string): AsyncGenerator<readonly RejectedLine[]> {
  let batch: RejectedLine[] = [];
  let size = 0;
  for await (const text of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
    if (text === '') continue;
    batch.push(rejectedLine(text));
    size += text.length;
    if (batch.length < linesAtOnce && size < charactersAtOnce) continue;
    yield batch;
    batch = [];
    size = 0;
  }
  if (batch.length > 0) yield batch;
}

async function openRejected(folder: string): Promise<{ file: FileHandle; size: number; path: string }> {
  const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
  let problem: unknown = null;
  for (const name of names) {
    try {
      const path = join(folder, name);
      const file = await open(path, O_APPEND | O_CREAT | O_WRONLY | O_NOFOLLOW | O_NONBLOCK, 0o600);
      const facts = await file.stat();
      if (facts.isFile()) return { file, size: facts.size, path };
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
