/**
 * The journal: append-only segment files in one folder. An append is written at once, so that a process that is killed
 * loses only what it had not handed over, and acknowledged after its bytes are on disk: all that is written while one
 * fdatasync is under way shares the next (group commit). Segments left by an earlier process are only read, never
 * written, so a torn tail stays where it is and costs one record.
 *
 * A write that fails (disk full, I/O error, file too large) is a typed answer, not a crash: the segment is cut back to
 * its last good byte and the next append tries again, so recording resumes when space returns. After a failed
 * fdatasync the kernel may have dropped the dirty pages, so that segment is abandoned at its last synced length.
 *
 * It knows bytes and positions, not turns; pump.ts moves what it holds into the database and deletes old segments.
 */
import { randomUUID } from 'node:crypto';
import { closeSync, fdatasync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { chmod, mkdir, unlink } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { syncFolder } from '../durable.ts';
import { type Position, seenSegment } from './cursor.ts';
import { encodeName, HEADER, NAME_BYTES, writeRecord } from './journal-record.ts';
import { findSegments, type SegmentFile, segmentPath } from './segments.ts';

export type Appended =
  /** `payload`: the bytes that are on disk now. */
  | { readonly kind: 'journalled'; readonly start: Position; readonly end: Position; readonly payload: Buffer }
  /** The journal is as large as it may get: the database has been away too long. */
  | { readonly kind: 'full' }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string };

export type JournalOptions = {
  readonly folder: string;
  /** A new segment is begun once the current one is this long. */
  readonly segmentBytes?: number;
  /** All segments together never grow beyond this. */
  readonly maxBytes?: number;
  /** How segment files are made; tests put a failing disk here. */
  readonly createFile?: (path: string) => SegmentWriter;
};

/**
 * A segment being written. Writing is synchronous: the kernel takes a few kilobytes in microseconds, while a thread of the
 * pool may be busy syncing for a tenth of a second, and what is not written yet is lost with the process.
 */
export type SegmentWriter = {
  /** Returns how many bytes were written, perhaps not all. */
  write(bytes: Buffer, from: number, position: number): number;
  truncate(bytes: number): void;
  datasync(): Promise<void>;
  close(): void;
};

export type Segment = {
  readonly segment: number;
  readonly id: string | null;
  /** Where its first entry begins. */
  readonly begins: number;
  /** How much may be read: what is synced. */
  readonly bytes: number;
  /** It may still grow. */
  readonly open: boolean;
};

export type Journal = {
  readonly folder: string;
  /** The segments as they were found at the start. */
  readonly found: readonly SegmentFile[];
  /** What was odd in the folder at the start and was left alone, a sentence each. */
  readonly strange: readonly string[];
  append(payload: string): Promise<Appended>;
  /** The same without a promise, for what comes by the thousand. */
  add(payload: string, settle: (result: Appended) => void): void;
  /** Segments on disk, oldest first. */
  segments(): Segment[];
  /** Ends the segment being written: the next entry begins another. Resolves once it is closed. */
  endSegment(): Promise<void>;
  /** Deletes a segment; the one being written is closed first. */
  remove(segment: number): Promise<void>;
  bytes(): number;
  /** The last write worked. */
  healthy(): boolean;
  /** Waits for what is queued, then closes the file. */
  close(): Promise<void>;
};

type Item = {
  readonly payload: string;
  /** Of its record. */
  readonly bytes: number;
  readonly settle: (result: Appended) => void;
};
/** An item in the bytes that were written, and where it stands in them. */
type Placed = { readonly item: Item; readonly group: Buffer; readonly at: number };
type Writing = {
  readonly segment: number;
  readonly file: SegmentWriter;
  /** Bytes in the file, and how many of them are on disk. */
  size: number;
  synced: number;
  /** Written and not synced. */
  waiting: Placed[];
  /** Its name in the folder is on disk, so that a crash cannot keep the bytes and lose the name. */
  named: boolean;
  /** Nothing more is to be written to it. */
  retired: boolean;
};

const MEGABYTE = 1024 * 1024;
/** How long written records are gathered for one sync: it costs about as much for forty as for one. */
const GATHER_MS = 10;
/** One write of at most about this much, so that a burst does not turn into one huge buffer. */
const GROUP_BYTES = 8 * MEGABYTE;

export async function openJournal(options: JournalOptions): Promise<Journal> {
  const { folder } = options;
  const createFile = options.createFile ?? createSegment;
  const maxBytes = options.maxBytes ?? 4096 * MEGABYTE;
  // Space comes back a segment at a time, so a small journal needs small ones.
  const segmentBytes = Math.min(options.segmentBytes ?? 16 * MEGABYTE, Math.ceil(maxBytes / 4));
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(folder, 0o700);
  const found = await findSegments(folder);
  const known = new Map<number, Omit<Segment, 'open'>>(); // insertion order is age
  const onDisk = new Map<number, number>(); // what files with holes take
  for (const { segment, id, bytes, diskBytes } of found.segments) {
    known.set(segment, { segment, id, bytes, begins: id === null ? 0 : NAME_BYTES });
    onDisk.set(segment, diskBytes);
  }
  let total = found.segments.reduce((sum, { diskBytes }) => sum + diskBytes, 0);
  let next = Math.max(found.highest, await seenSegment(folder)) + 1;
  let current: Writing | null = null;
  const unsynced: Writing[] = []; // segments with something to sync or to close, oldest first
  let healthy = true;
  let closed = false;
  let queue: Item[] = [];
  let writing: Promise<void> | null = null;
  let syncing: Promise<void> | null = null;

  /** A number that somebody took meanwhile is passed over. */
  function begin(): Writing {
    for (;;) {
      const segment = next++;
      try {
        const file = createFile(segmentPath(folder, segment));
        known.set(segment, { segment, id: randomUUID(), begins: NAME_BYTES, bytes: 0 });
        current = { segment, file, size: 0, synced: 0, waiting: [], named: false, retired: false };
        return current;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
    }
  }

  /** Its file is closed once all of it is synced. */
  function retire(one: Writing): void {
    if (current === one) current = null;
    one.retired = true;
    if (!unsynced.includes(one)) unsynced.push(one);
    syncing ??= sync();
  }

  /** Writes one group behind the last; throws what the file system throws, leaving the segment readable. */
  function write(items: readonly Item[]): void {
    if (current !== null && current.size >= segmentBytes) retire(current);
    const to = current ?? begin();
    const name = to.size === 0 ? encodeName(known.get(to.segment)!.id!) : null;
    const { group, placed } = grouped(name, items);
    try {
      for (let written = 0; written < group.length; ) written += to.file.write(group, written, to.size + written);
    } catch (error) {
      // Cut the partial tail off. If even that fails, later records go to a new segment and the scan skips the tail.
      try {
        to.file.truncate(to.size);
      } catch {
        retire(to);
      }
      throw error;
    }
    to.size += group.length;
    total += group.length;
    for (const one of placed) to.waiting.push(one);
    if (!unsynced.includes(to)) unsynced.push(to);
    syncing ??= sync();
  }

  async function writeQueued(): Promise<void> {
    await null; // what is appended in one go is one group, and one write
    while (queue.length > 0) {
      let count = 0;
      for (let bytes = 0; count < queue.length; count++) {
        bytes += queue[count]!.bytes;
        if (count > 0 && bytes > GROUP_BYTES) break;
      }
      const group = queue.slice(0, count);
      queue = queue.slice(count);
      // Whole groups are refused near the limit; what fits in the next, smaller one is still taken.
      const taken: Item[] = [];
      let room = maxBytes - total - (current === null || current.size >= segmentBytes ? NAME_BYTES : 0);
      for (const item of group) {
        if (item.bytes > room) item.settle({ kind: 'full' });
        else {
          room -= item.bytes;
          taken.push(item);
        }
      }
      if (taken.length === 0) continue;
      try {
        write(taken);
      } catch (error) {
        fail(taken, error);
      }
    }
    writing = null;
  }

  function fail(items: readonly Item[], error: unknown): void {
    healthy = false;
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
    for (const item of items) item.settle({ kind: 'failed', code, message: String(error) });
  }

  /** Syncs in the order of writing, so that acknowledgements come in that order too. */
  async function sync(): Promise<void> {
    await null; // so that `syncing` is set before this can end
    while (unsynced.length > 0) {
      const of = unsynced[0]!;
      if (!closed && !of.retired) await sleep(GATHER_MS);
      const items = of.waiting;
      const upTo = of.size;
      of.waiting = [];
      try {
        if (!of.named) await syncFolder(folder);
        of.named = true;
        if (upTo > of.synced) await of.file.datasync();
        acknowledge(of, items, upTo);
      } catch (error) {
        abandon(of, items, error);
      }
      if (of.waiting.length > 0) continue;
      unsynced.shift();
      if (of.retired) close(of);
    }
    syncing = null;
  }

  function acknowledge(of: Writing, items: readonly Placed[], upTo: number): void {
    if (items.length > 0) healthy = true;
    const { segment } = of;
    let offset = of.synced === 0 ? NAME_BYTES : of.synced;
    of.synced = upTo;
    known.set(segment, { ...known.get(segment)!, bytes: upTo });
    for (const { item, group, at } of items) {
      const start = { segment, offset };
      offset += item.bytes;
      const payload = group.subarray(at + HEADER, at + item.bytes);
      item.settle({ kind: 'journalled', start, end: { segment, offset }, payload });
    }
  }

  /** Nothing behind the last good sync is trusted, not even what is written by now. */
  function abandon(of: Writing, items: readonly Placed[], error: unknown): void {
    if (current === of) current = null;
    of.retired = true;
    try {
      of.file.truncate(of.synced);
    } catch {
      // What is left there is read once more at the next start.
    }
    total -= of.size - of.synced;
    of.size = of.synced;
    fail(
      [...items, ...of.waiting.splice(0)].map(({ item }) => item),
      error,
    );
  }

  function close({ file }: Writing): void {
    try {
      file.close();
    } catch {
      // All of it is synced or given up.
    }
  }

  function add(payload: string, settle: (result: Appended) => void): void {
    if (closed) {
      settle({ kind: 'failed', code: 'closed', message: 'The journal is closed.' });
      return;
    }
    queue.push({ payload, bytes: HEADER + Buffer.byteLength(payload), settle });
    writing ??= writeQueued();
  }

  return {
    folder,
    found: found.segments,
    strange: found.strange,
    append: (payload) => new Promise((settle) => add(payload, settle)),
    add,
    segments: () =>
      [...known.values()].map((one) => ({
        ...one,
        open: current?.segment === one.segment || unsynced.some(({ segment }) => segment === one.segment),
      })),
    async endSegment() {
      if (current !== null) retire(current);
      await syncing;
    },
    async remove(segment) {
      if (current?.segment === segment) retire(current);
      while (unsynced.some((one) => one.segment === segment)) await syncing;
      await unlink(segmentPath(folder, segment)).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
      });
      total -= onDisk.get(segment) ?? known.get(segment)?.bytes ?? 0;
      known.delete(segment);
    },
    bytes: () => total,
    healthy: () => healthy,
    async close() {
      closed = true;
      await writing;
      if (current !== null) retire(current);
      await syncing;
    },
  };
}

/** The records as the bytes that are written: one buffer, filled in place. */
function grouped(name: Buffer | null, items: readonly Item[]): { readonly group: Buffer; readonly placed: Placed[] } {
  let size = name?.length ?? 0;
  for (const { bytes } of items) size += bytes;
  const group = Buffer.allocUnsafeSlow(size); // on its own: the pool would be kept as long as the last of them
  name?.copy(group);
  let at = name?.length ?? 0;
  const placed: Placed[] = [];
  for (const item of items) {
    writeRecord(group, at, item.payload, item.bytes - HEADER);
    placed.push({ item, group, at });
    at += item.bytes;
  }
  return { group, placed };
}

const fdatasyncOf = promisify(fdatasync);

export function createSegment(path: string): SegmentWriter {
  const fd = openSync(path, 'wx', 0o600);
  return {
    write: (bytes, from, position) => writeSync(fd, bytes, from, bytes.length - from, position),
    truncate: (bytes) => ftruncateSync(fd, bytes),
    datasync: () => fdatasyncOf(fd),
    close: () => closeSync(fd),
  };
}
