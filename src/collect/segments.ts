/**
 * The segment files of a journal folder, as they are found: numbered files, oldest first. Whatever else has such a name
 * (a folder, a link, a pipe, a file larger than any segment) is left alone and said; nothing of it counts as read.
 */
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { NAME_BYTES, nameIn } from './journal-record.ts';

export type SegmentFile = {
  readonly segment: number;
  readonly bytes: number;
  /** What it takes on disk: less than its length where it has holes. */
  readonly diskBytes: number;
  /** Random, made with the file; null for one that an older Pawl wrote. */
  readonly id: string | null;
};

export type FoundSegments = {
  readonly segments: readonly SegmentFile[];
  /** The highest number that is in use, whatever uses it. */
  readonly highest: number;
  /** What was left alone and why, a sentence each. */
  readonly strange: readonly string[];
};

/** Far more than one group of records; a longer file is not a segment. */
const LONGEST_SEGMENT = 2 * 1024 ** 3;
/** Numbers stay far below what a file name of 15 digits and a double can hold. */
export const HIGHEST_SEGMENT = 9e14;

export function segmentPath(folder: string, segment: number): string {
  return join(folder, `${String(segment).padStart(12, '0')}.journal`);
}

export async function findSegments(folder: string): Promise<FoundSegments> {
  const segments: SegmentFile[] = [];
  const strange: string[] = [];
  let highest = 0;
  for (const name of (await readdir(folder)).filter((one) => one.endsWith('.journal')).sort()) {
    const digits = /^(\d{12,15})\.journal$/.exec(name)?.[1];
    const number = Number(digits ?? Number.NaN);
    const numbered = number > 0 && number < HIGHEST_SEGMENT && segmentPath('', number) === name;
    if (numbered) highest = Math.max(highest, number);
    const odd = numbered ? await inspect(folder, number) : 'has a name that Pawl does not give';
    if (typeof odd === 'string') strange.push(`${name} in the journal ${odd}: it is left alone, unread.`);
    else segments.push(odd);
  }
  return { segments: segments.sort((a, b) => a.segment - b.segment), highest, strange };
}

/** The file, or what is odd about it. */
async function inspect(folder: string, segment: number): Promise<SegmentFile | string> {
  const path = segmentPath(folder, segment);
  try {
    const facts = await lstat(path);
    if (facts.isSymbolicLink()) return 'is a link';
    if (facts.isDirectory()) return 'is a folder';
    if (!facts.isFile()) return 'is not a file';
    if (facts.size > LONGEST_SEGMENT) return `is larger than any segment (${facts.size} bytes)`;
    const file = await openSegment(folder, segment);
    try {
      const head = Buffer.alloc(NAME_BYTES);
      const { bytesRead } = await file.read(head, 0, NAME_BYTES, 0);
      const id = nameIn(head.subarray(0, bytesRead));
      return { segment, bytes: facts.size, diskBytes: Math.min(facts.size, facts.blocks * 512), id };
    } finally {
      await file.close();
    }
  } catch (error) {
    return `cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)})`;
  }
}

/** Follows no link and waits for no pipe. */
export const openSegment = (folder: string, segment: number): Promise<FileHandle> =>
  open(segmentPath(folder, segment), constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
