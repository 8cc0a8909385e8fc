/**
 * What the journal has acknowledged and the database does not have yet, in order: recent entries from memory, older ones
 * from disk, so that memory stays bounded however long the database is away. Segments are told apart by their place in
 * the journal's list, never by comparing numbers.
 */

import type { Line } from '../store/line.ts';
import { readSignedLine } from '../store/signed-line.ts';
import type { Position } from './cursor.ts';
import type { Journal } from './journal.ts';
import { type Scan, scanRecords } from './journal-record.ts';
import { openSegment } from './segments.ts';

export type Damaged = { readonly segment: number; readonly offset: number; readonly bytes: number };
export type Batch = { readonly lines: readonly Line[]; readonly end: Position };

export type UnreadOptions = {
  readonly journal: Journal;
  /** How far an earlier start had come in one of the segments. */
  readonly from: Position | null;
  /** Most bytes of entries kept in memory, and most entries and about most bytes in a batch. */
  readonly windowBytes: number;
  readonly batchEntries: number;
  readonly batchBytes: number;
  readonly onDamage: (damaged: Damaged) => void;
};

export type Unread = {
  /** An acknowledged append, to be called in the journal's order; `line`: what the payload says, where that is known. */
  offer(payload: Buffer, start: Position, end: Position, line?: Line): void;
  /** The next entries, null when there are none. The same again until `advance` is called. */
  next(): Promise<Batch | null>;
  /** Everything up to here is in the database. */
  advance(to: Position): void;
  isEmpty(): boolean;
  /** Less than a batch, and nothing on disk that has to be caught up with. */
  isShort(): boolean;
  bytes(): number;
  /** When the oldest was acknowledged, if it is in memory. */
  oldestAt(): number | null;
  position(): Position;
  /** Segments that are done with and can go. */
  finished(): number[];
  /** Forgets what is in memory: it is read from disk instead. */
  forget(): void;
};

type Waiting = { line: Line; start: Position; end: Position; at: number };

const READ_BYTES = 4 * 1024 * 1024;

export function createUnread(options: UnreadOptions): Unread {
  const { journal, from, windowBytes, batchEntries, batchBytes } = options;
  let position: Position = { segment: 0, offset: 0 };
  const passed = new Set<number>();
  let window: Waiting[] = []; // contiguous, up to the journal's end
  let head = 0;
  let held = 0;
  let damage: { segment: number; offset: number } | null = null; // whose end is not seen yet

  /** How far a segment is read. */
  function readTo(segment: number, begins: number): number {
    if (segment === position.segment) return position.offset;
    return segment === from?.segment ? from.offset : begins;
  }

  /** Where there is something to read next, or null. */
  function pending(): { from: Position; limit: number } | null {
    for (const { segment, begins, bytes } of journal.segments()) {
      if (passed.has(segment)) continue;
      const offset = readTo(segment, begins);
      if (offset < bytes) return { from: { segment, offset }, limit: bytes };
    }
    return null;
  }

  const isRead = ({ segment, offset }: Position): boolean =>
    passed.has(segment) || (segment === position.segment && offset < position.offset);

  const isFirst = (item: Waiting | undefined, { segment, offset }: Position): item is Waiting =>
    item !== undefined && item.start.segment === segment && item.start.offset === offset;

  function evict(oldest: Waiting): void {
    head++;
    held -= oldest.end.offset - oldest.start.offset;
  }

  /** Synced bytes can be read from disk a moment before they are offered; what comes late is no longer needed. */
  function dropRead(): void {
    for (let late = window[head]; late !== undefined && isRead(late.start); late = window[head]) evict(late);
    compact();
  }

  function compact(): void {
    if (head > 1024 && head * 2 > window.length) {
      window = window.slice(head);
      head = 0;
    }
  }

  function fromMemory(): Batch {
    const lines: Line[] = [];
    let bytes = 0;
    let end = position;
    for (let i = head; i < window.length && lines.length < batchEntries && bytes < batchBytes; i++) {
      const item = window[i] as Waiting;
      // A batch ends with its segment, so that a position is always in one.
      if (lines.length > 0 && item.start.segment !== end.segment) break;
      lines.push(item.line);
      bytes += item.end.offset - item.start.offset;
      end = item.end;
    }
    return { lines, end };
  }

  async function fromDisk(start: Position, limit: number): Promise<Batch> {
    const file = await openSegment(journal.folder, start.segment);
    try {
      for (let want = READ_BYTES; ; ) {
        const length = Math.min(want, limit - start.offset);
        const bytes = Buffer.allocUnsafe(length);
        let read = 0;
        while (read < length) {
          const { bytesRead } = await file.read(bytes, read, length - read, start.offset + read);
          if (bytesRead === 0) break;
          read += bytesRead;
        }
        // A file that has become shorter than it was has lost what followed.
        const missing = length - read;
        const more = missing > 0 ? 0 : limit - start.offset - length;
        const scan = scanRecords(bytes.subarray(0, read), more, batchBytes, batchEntries);
        if (scan.consumed === 0 && scan.needs > length) {
          want = scan.needs; // one record larger than the block
          continue;
        }
        return digest(scan, start, missing > 0 && scan.consumed === read ? limit - start.offset - read : 0);
      }
    } finally {
      await file.close();
    }
  }

  function digest(scan: Scan, { segment, offset }: Position, missing: number): Batch {
    const lines: Line[] = [];
    if (scan.damage[0]?.start !== 0) endDamage(offset); // what the last block ended in did not go on
    for (const { start, end } of scan.damage) {
      damage ??= { segment, offset: offset + start };
      if (end < scan.consumed || !scan.open) endDamage(offset + end);
    }
    for (const { start, end, payload } of scan.records) {
      try {
        lines.push(readSignedLine(payload));
      } catch {
        options.onDamage({ segment, offset: offset + start, bytes: end - start });
      }
    }
    if (missing > 0) {
      damage ??= { segment, offset: offset + scan.consumed };
      endDamage(offset + scan.consumed + missing);
    }
    return { lines, end: { segment, offset: offset + scan.consumed + missing } };
  }

  function endDamage(end: number): void {
    if (damage === null) return;
    options.onDamage({ ...damage, bytes: end - damage.offset });
    damage = null;
  }

  return {
    offer(payload, start, end, line) {
      // Read as it comes, while the batch before is being written, and not when the next one is put together.
      window.push({ line: line ?? readSignedLine(payload), start, end, at: Date.now() });
      held += end.offset - start.offset;
      while (held > windowBytes && head < window.length) evict(window[head] as Waiting);
      compact();
    },
    async next() {
      const next = pending();
      if (next === null) return null;
      dropRead();
      const first = window[head]?.start;
      if (isFirst(window[head], next.from)) return fromMemory();
      // What is in memory need not be read.
      const reaches = first?.segment === next.from.segment && first.offset > next.from.offset;
      return await fromDisk(next.from, reaches ? first.offset : next.limit);
    },
    advance(to) {
      if (to.segment !== position.segment)
        for (const { segment } of journal.segments()) {
          if (segment === to.segment) break;
          passed.add(segment);
        }
      position = to;
      dropRead();
    },
    isEmpty: () => pending() === null,
    isShort() {
      const next = pending();
      return next === null || (isFirst(window[head], next.from) && window.length - head < batchEntries);
    },
    bytes() {
      let bytes = 0;
      for (const { segment, begins, bytes: end } of journal.segments())
        if (!passed.has(segment)) bytes += Math.max(0, end - readTo(segment, begins));
      return bytes;
    },
    oldestAt() {
      const next = pending();
      const first = window[head];
      return next !== null && isFirst(first, next.from) ? first.at : null;
    },
    position: () => position,
    finished() {
      const done: number[] = [];
      for (const { segment, begins, bytes, open } of journal.segments())
        if (!open && (passed.has(segment) || readTo(segment, begins) >= bytes)) done.push(segment);
      return done;
    },
    forget() {
      window = [];
      head = 0;
      held = 0;
    },
  };
}
