/**
 * The journal: append-only segment files in one folder. An append is acknowledged after its bytes are on disk; all
 * appends that wait while one write is under way share the next write and the next fdatasync (group commit). Segments
 * left by an earlier process are only read, never written, so a torn tail stays where it is and costs one record.
 *
 * A write that fails (disk full, I/O error, file too large) is a typed answer, not a crash: the segment is cut back to
 * its last good byte and the next append tries again, so recording resumes when space returns. After a failed
 * fdatasync the kernel may have dropped the dirty pages, so that segment is abandoned at its last synced length.
 *
 * It knows bytes and positions, not turns; pump.ts moves what it holds into the database and deletes old segments.
 */
import { type FileHandle, mkdir, open, readdir, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeRecord, HEADER } from './journal-record.ts';

export type Position = { readonly segment: number; readonly offset: number };
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
  /** How segment files are opened; tests put a failing disk here. */
  readonly openFile?: (path: string, flags: string, mode: number) => Promise<FileHandle>;
};

export type Journal = {
  readonly folder: string;
  append(payload: string): Promise<Appended>;
  /** Segments on disk, oldest first, with the bytes that may be read: for the one being written, those synced. */
  segments(): { readonly segment: number; readonly bytes: number }[];
  /** Where the next record will be. */
  end(): Position;
  /** Deletes a segment; the one being written is closed first. */
  remove(segment: number): Promise<void>;
  bytes(): number;
  /** The last write worked. */
  healthy(): boolean;
  /** Waits for what is queued, then closes the file. */
  close(): Promise<void>;
};

const MEGABYTE = 1024 * 1024;
/** How long appends are gathered for one write and one sync: a sync costs about as much for forty records as for one. */
const GATHER_MS = 10;
/** One write of at most about this much, so that a burst does not turn into one huge buffer. */
const GROUP_BYTES = 8 * MEGABYTE;

export function segmentPath(folder: string, segment: number): string {
  return join(folder, `${String(segment).padStart(12, '0')}.journal`);
}

export async function openJournal(options: JournalOptions): Promise<Journal> {
  const { folder } = options;
  const openFile = options.openFile ?? open;
  const maxBytes = options.maxBytes ?? 4096 * MEGABYTE;
  // Space comes back a segment at a time, so a small journal needs small ones.
  const segmentBytes = Math.min(options.segmentBytes ?? 16 * MEGABYTE, Math.ceil(maxBytes / 4));
  await mkdir(folder, { recursive: true });
  const sizes = new Map<number, number>(); // insertion order is age
  for (const segment of await listSegments(folder)) sizes.set(segment, (await stat(segmentPath(folder, segment))).size);
  let total = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  let next = Math.max(0, ...sizes.keys()) + 1;
  let current: { segment: number; file: FileHandle; size: number } | null = null;
  let healthy = true;
  let closed = false;
  let queue: { record: Buffer; settle: (result: Appended) => void }[] = [];
  let flushing: Promise<void> | null = null;

  async function begin(): Promise<{ segment: number; file: FileHandle; size: number }> {
    const segment = next++;
    const file = await openFile(segmentPath(folder, segment), 'wx', 0o600);
    try {
      await syncFolder(folder); // else a crash could keep the bytes and lose the name
    } catch (error) {
      await file.close();
      throw error;
    }
    sizes.set(segment, 0);
    current = { segment, file, size: 0 };
    return current;
  }

  async function retire(): Promise<void> {
    const old = current;
    current = null;
    await old?.file.close();
  }

  /** Writes one group and syncs it; throws what the file system throws, leaving the segment readable. */
  async function commit(group: Buffer): Promise<Position> {
    if (current !== null && current.size >= segmentBytes) await retire();
    const to = current ?? (await begin());
    let written = 0;
    try {
      while (written < group.length) {
        const { bytesWritten } = await to.file.write(group, written, group.length - written, to.size + written);
        written += bytesWritten;
      }
    } catch (error) {
      // Cut the partial tail off. If even that fails, later records go to a new segment and the scan skips the tail.
      await to.file.truncate(to.size).catch(retire);
      throw error;
    }
    try {
      await to.file.datasync();
    } catch (error) {
      await to.file.truncate(to.size).catch(() => {});
      await retire();
      throw error;
    }
    const start = { segment: to.segment, offset: to.size };
    to.size += group.length;
    total += group.length;
    sizes.set(to.segment, to.size);
    return start;
  }

  async function flush(): Promise<void> {
    while (queue.length > 0) {
      if (!closed) await sleep(GATHER_MS);
      const group: typeof queue = [];
      let bytes = 0;
      for (const item of queue) {
        if (group.length > 0 && bytes + item.record.length > GROUP_BYTES) break;
        group.push(item);
        bytes += item.record.length;
      }
      queue = queue.slice(group.length);
      // Whole groups are refused near the limit; what fits in the next, smaller one is still taken.
      const taken: typeof queue = [];
      let room = maxBytes - total;
      for (const item of group) {
        if (item.record.length > room) item.settle({ kind: 'full' });
        else {
          room -= item.record.length;
          taken.push(item);
        }
      }
      if (taken.length === 0) continue;
      try {
        const start = await commit(taken.length === 1 ? taken[0]!.record : Buffer.concat(taken.map((i) => i.record)));
        healthy = true;
        let offset = start.offset;
        for (const item of taken) {
          const from = { segment: start.segment, offset };
          offset += item.record.length;
          item.settle({
            kind: 'journalled',
            start: from,
            end: { segment: start.segment, offset },
            payload: item.record.subarray(HEADER),
          });
        }
      } catch (error) {
        healthy = false;
        const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
        for (const item of taken) item.settle({ kind: 'failed', code, message: String(error) });
      }
    }
    flushing = null;
  }

  return {
    folder,
    append(payload) {
      if (closed) return Promise.resolve({ kind: 'failed', code: 'closed', message: 'The journal is closed.' });
      return new Promise((settle) => {
        queue.push({ record: encodeRecord(payload), settle });
        flushing ??= Promise.resolve().then(flush);
      });
    },
    segments: () => [...sizes].map(([segment, bytes]) => ({ segment, bytes })),
    end: () =>
      current === null || current.size >= segmentBytes
        ? { segment: next, offset: 0 }
        : { segment: current.segment, offset: current.size },
    async remove(segment) {
      if (current?.segment === segment) await retire();
      await unlink(segmentPath(folder, segment)).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
      });
      total -= sizes.get(segment) ?? 0;
      sizes.delete(segment);
    },
    bytes: () => total,
    healthy: () => healthy,
    async close() {
      closed = true;
      await flushing;
      await retire();
    },
  };
}

async function listSegments(folder: string): Promise<number[]> {
  const names = await readdir(folder);
  return names
    .map((name) => /^(\d{12})\.journal$/.exec(name)?.[1])
    .filter((digits) => digits !== undefined)
    .map(Number)
    .sort((a, b) => a - b);
}

/** Makes a created or renamed name durable. Some platforms cannot open a folder; there it is done by the rename. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
