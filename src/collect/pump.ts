/**
 * Moves what the journal acknowledged into the sink, in order, batch by batch, for as long as it takes.
 *
 * Recent entries come from memory, older ones from disk: memory stays bounded however long the database is away. A
 * batch is written until the sink takes it; the durable cursor moves behind it, now and then rather than per batch,
 * since the sink recognises what it has by id. What the sink refuses goes to rejected.jsonl; damaged bytes are skipped
 * and reported. A consumed segment is deleted even if the cursor could not be written (a full disk must be able to
 * empty itself): a start then begins at the oldest segment there is.
 *
 * While more comes in than the sink takes, the pump rests between batches: what waits is safe in the journal, and the
 * processors belong to answering.
 */
import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { BoundaryError } from '../errors.ts';
import { type Journal, type Position, segmentPath, syncFolder } from './journal.ts';
import { scanRecords } from './journal-record.ts';
import { type Line, readLine } from './line.ts';
import type { Sink } from './sink.ts';

export type Damaged = { readonly segment: number; readonly offset: number; readonly bytes: number };

export type PumpOptions = {
  readonly journal: Journal;
  readonly openSink: () => Promise<Sink>;
  /** Most bytes of acknowledged entries kept in memory. */
  readonly windowBytes?: number;
  readonly batchEntries?: number;
  readonly batchBytes?: number;
  /** Entries are gathered this long for one batch: a statement costs nearly the same for one as for fifty. */
  readonly gatherMs?: number;
  readonly cursorEveryMs?: number;
  /** First and longest wait before trying the sink again. */
  readonly backoffMs?: readonly [number, number];
  readonly onDamage?: (damaged: Damaged) => void;
  readonly onProblem?: (message: string) => void;
};

export type PumpStats = {
  readonly stored: number;
  readonly refused: number;
  readonly corrupt: number;
  /** Age of the oldest acknowledged entry that is not in the sink yet. */
  readonly lagMs: number;
  /** The last thing asked of the sink worked. */
  readonly up: boolean;
};

export type Pump = {
  /** An acknowledged append; to be called in the journal's order. */
  offer(payload: Buffer, start: Position, end: Position): void;
  stats(): PumpStats;
  /** Resolves when everything acknowledged so far is in the sink, or at the latest after `timeoutMs`. */
  settled(timeoutMs: number): Promise<boolean>;
  /** Ends after the batch under way, writes the cursor, closes the sink. */
  stop(): Promise<void>;
};

type Waiting = { payload: Buffer; start: Position; end: Position; at: number };
type Batch = { lines: Line[]; end: Position };

/** Rest this many times as long as the last batch took, and no longer than this. */
const REST = 4;
const LONGEST_REST_MS = 1000;
/** An entry that has waited this long ends all resting. */
const PATIENCE_MS = 10_000;

/** How long to leave the sink alone after a batch; the bytes are those that waited when it began and when it ended. */
export function rest(batch: { tookMs: number; waitingBefore: number; waitingAfter: number; lagMs: number }): number {
  const fallsBehind = batch.waitingAfter >= batch.waitingBefore;
  return fallsBehind && batch.lagMs < PATIENCE_MS ? Math.min(LONGEST_REST_MS, REST * batch.tookMs) : 0;
}

const READ_BYTES = 4 * 1024 * 1024;
/** Errors that say "never" are believed this many times in a row; beyond that the sink itself is at fault, so wait. */
const MAX_REJECTIONS_IN_A_ROW = 3;
const REJECT_AFTER = 5;

export async function startPump(options: PumpOptions): Promise<Pump> {
  const { journal } = options;
  const windowBytes = options.windowBytes ?? 32 * 1024 * 1024;
  const batchEntries = options.batchEntries ?? 1000;
  const gatherMs = options.gatherMs ?? 100;
  const batchBytes = options.batchBytes ?? 4 * 1024 * 1024;
  const cursorEveryMs = options.cursorEveryMs ?? 1000;
  const [firstBackoff, longestBackoff] = options.backoffMs ?? [100, 5000];

  let position = await readCursor(journal.folder);
  let saved = position;
  let savedAt = 0;
  let window: Waiting[] = []; // contiguous, up to the journal's end
  let head = 0;
  let held = 0;
  let stopped = false;
  let wake: () => void = () => {};
  let sink: Sink | null = null;
  let up = true;
  let caughtUpAt = Date.now();
  let rejectionsInARow = 0;
  const counts = { stored: 0, refused: 0, corrupt: 0 };

  /** Where there is something to read next, or null. */
  function pending(): { from: Position; limit: number } | null {
    for (const { segment, bytes } of journal.segments()) {
      if (segment < position.segment) continue;
      const offset = segment === position.segment ? position.offset : 0;
      if (offset < bytes) return { from: { segment, offset }, limit: bytes };
    }
    return null;
  }

  /** Bytes that are acknowledged and not in the sink. */
  function waiting(): number {
    let bytes = 0;
    for (const { segment, bytes: end } of journal.segments()) {
      if (segment > position.segment) bytes += end;
      else if (segment === position.segment) bytes += Math.max(0, end - position.offset);
    }
    return bytes;
  }

  function lagMs(): number {
    const next = pending();
    if (next === null) return 0;
    const first = window[head];
    return Math.max(0, Date.now() - (isFirst(first, next.from) ? first!.at : caughtUpAt));
  }

  const isFirst = (item: Waiting | undefined, { segment, offset }: Position): boolean =>
    item !== undefined && item.start.segment === segment && item.start.offset === offset;

  /** Less than a batch, and nothing on disk that has to be caught up with. */
  function fewWaiting(): boolean {
    const next = pending();
    return next === null || (isFirst(window[head], next.from) && window.length - head < batchEntries);
  }

  async function nextBatch(): Promise<Batch | null> {
    const next = pending();
    if (next === null) return null;
    // Synced bytes can be read from disk a moment before they are offered; what comes late is no longer needed.
    for (let late = window[head]; late !== undefined && isBefore(late.start, next.from); late = window[head]) {
      evict(late);
    }
    const first = window[head];
    if (isFirst(first, next.from)) return fromMemory();
    const limit =
      first !== undefined && first.start.segment === next.from.segment && first.start.offset > next.from.offset
        ? first.start.offset
        : next.limit;
    return await fromDisk(next.from, limit);
  }

  function fromMemory(): Batch {
    const lines: Line[] = [];
    let bytes = 0;
    let end = position;
    while (head < window.length && lines.length < batchEntries && bytes < batchBytes) {
      const item = window[head++] as Waiting;
      lines.push(readLine(item.payload));
      bytes += item.end.offset - item.start.offset;
      end = item.end;
    }
    held -= bytes;
    compact();
    return { lines, end };
  }

  function evict(oldest: Waiting): void {
    head++;
    held -= oldest.end.offset - oldest.start.offset;
  }

  function compact(): void {
    if (head > 1024 && head * 2 > window.length) {
      window = window.slice(head);
      head = 0;
    }
  }

  async function fromDisk(from: Position, limit: number): Promise<Batch> {
    const file = await open(segmentPath(journal.folder, from.segment), 'r');
    try {
      for (let want = READ_BYTES; ; want *= 4) {
        const length = Math.min(want, limit - from.offset);
        const bytes = Buffer.allocUnsafe(length);
        let read = 0;
        while (read < length) {
          const { bytesRead } = await file.read(bytes, read, length - read, from.offset + read);
          if (bytesRead === 0) break;
          read += bytesRead;
        }
        const final = from.offset + length >= limit || read < length;
        const scan = scanRecords(bytes.subarray(0, read), final, batchBytes);
        if (scan.consumed === 0 && !final) continue; // one record larger than the block
        return digest(scan, from, final && scan.consumed === read ? limit : from.offset + scan.consumed);
      }
    } finally {
      await file.close();
    }
  }

  function digest(scan: ReturnType<typeof scanRecords>, from: Position, end: number): Batch {
    const lines: Line[] = [];
    const damaged = (start: number, finish: number) => {
      counts.corrupt++;
      options.onDamage?.({ segment: from.segment, offset: from.offset + start, bytes: finish - start });
    };
    let last = end;
    for (const { start, end: finish } of scan.damage) damaged(start, finish);
    for (const { start, end: finish, payload } of scan.records) {
      if (lines.length >= batchEntries) {
        last = from.offset + start;
        break;
      }
      try {
        lines.push(readLine(payload));
      } catch {
        damaged(start, finish);
      }
    }
    return { lines, end: { segment: from.segment, offset: last } };
  }

  /** Opened at once, not at the first batch: whoever opens it may want to read from it. False when stopped first. */
  async function connect(): Promise<boolean> {
    for (let attempt = 0; !stopped; attempt++) {
      try {
        sink ??= await options.openSink();
        return true;
      } catch (error) {
        await trouble(error, attempt);
      }
    }
    return false;
  }

  async function trouble(error: unknown, attempt: number): Promise<void> {
    if (up) options.onProblem?.(`The database does not take recordings: ${String(error)}. They wait in the journal.`);
    up = false;
    await pause(Math.min(longestBackoff, firstBackoff * 2 ** Math.min(attempt, 16)));
  }

  /** True once the lines are in the sink or rejected; false when stopped before that. */
  async function deliver(to: Sink, lines: readonly Line[]): Promise<boolean> {
    for (let attempt = 0; !stopped; attempt++) {
      try {
        const { refused } = await to.write(lines);
        up = true;
        rejectionsInARow = 0;
        for (const { line, error } of refused) await reject(line, error);
        counts.stored += lines.length - refused.length;
        return true;
      } catch (error) {
        const never = error instanceof BoundaryError && !error.retryable;
        if (never && rejectionsInARow < MAX_REJECTIONS_IN_A_ROW) {
          if (lines.length > 1) {
            const middle = lines.length >> 1;
            return (await deliver(to, lines.slice(0, middle))) && (await deliver(to, lines.slice(middle)));
          }
          if (attempt + 1 >= REJECT_AFTER) {
            rejectionsInARow++;
            await reject(lines[0] as Line, String(error));
            return true;
          }
        }
        await trouble(error, attempt);
      }
    }
    return false;
  }

  async function reject({ kind, json, request, choices }: Line, reason: string): Promise<void> {
    const file = await open(join(journal.folder, 'rejected.jsonl'), 'a', 0o600);
    try {
      const facts = JSON.stringify({ at: new Date().toISOString(), reason, kind });
      const documents = kind === 'turn' ? `,"request":${request},"choices":${choices}` : '';
      await file.appendFile(`${facts.slice(0, -1)},"entry":${json}${documents}}\n`);
      await file.datasync();
      counts.refused++;
    } finally {
      await file.close();
    }
  }

  function pause(ms: number): Promise<void> | void {
    if (ms === 0) return;
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        // New entries do not shorten a backoff; only stopping does.
        if (!stopped) return;
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async function save(force: boolean): Promise<void> {
    const now = Date.now();
    const end = journal.end();
    for (const { segment, bytes } of journal.segments()) {
      const done = segment < position.segment || (segment === position.segment && position.offset >= bytes);
      if (done && segment !== end.segment) await journal.remove(segment);
    }
    const moved = saved.segment !== position.segment || saved.offset !== position.offset;
    if (!moved || (!force && now - savedAt < cursorEveryMs)) return;
    savedAt = now;
    try {
      await writeCursor(journal.folder, position);
      saved = position;
    } catch (error) {
      // Only costs re-reading after a crash.
      options.onProblem?.(`The journal's cursor could not be written: ${String(error)}.`);
    }
  }

  async function run(): Promise<void> {
    await connect();
    while (!stopped && sink !== null) {
      const batch = await nextBatch();
      if (batch === null) {
        caughtUpAt = Date.now();
        await save(false);
        if (pending() !== null || stopped) continue;
        await new Promise<void>((resolve) => {
          // The timer lets the cursor catch up with a journal that has gone quiet.
          const timer = setTimeout(resolve, cursorEveryMs);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
        continue;
      }
      const began = Date.now();
      const waitingBefore = waiting();
      if (batch.lines.length > 0 && !(await deliver(sink, batch.lines))) break;
      position = batch.end;
      await save(false);
      const tookMs = Date.now() - began;
      await pause(fewWaiting() ? gatherMs : rest({ tookMs, waitingBefore, waitingAfter: waiting(), lagMs: lagMs() }));
    }
    await save(true);
    await sink?.close();
  }

  /** A file system in trouble (reading, rejecting) is waited out like a database in trouble. */
  async function runForever(): Promise<void> {
    for (;;) {
      try {
        await run();
        return;
      } catch (error) {
        options.onProblem?.(`Moving the journal into the database failed: ${String(error)}. Trying again.`);
        // What had been taken from memory is read from disk again.
        window = [];
        head = 0;
        held = 0;
        if (stopped) return;
        await pause(longestBackoff);
      }
    }
  }
  const running = runForever();

  const caughtUp = () => pending() === null;
  return {
    offer(payload, start, end) {
      window.push({ payload, start, end, at: Date.now() });
      held += end.offset - start.offset;
      while (held > windowBytes && head < window.length) {
        evict(window[head] as Waiting);
      }
      compact();
      wake();
    },
    stats() {
      return { ...counts, up, lagMs: lagMs() };
    },
    async settled(timeoutMs) {
      const until = Date.now() + timeoutMs;
      while (!caughtUp() && Date.now() < until && !stopped) await new Promise((resolve) => setTimeout(resolve, 10));
      return caughtUp();
    },
    async stop() {
      stopped = true;
      wake();
      await running;
    },
  };
}

function isBefore(a: Position, b: Position): boolean {
  return a.segment < b.segment || (a.segment === b.segment && a.offset < b.offset);
}

const cursorPath = (folder: string) => join(folder, 'cursor.json');

/** Without a readable cursor everything still there is read again; the sink knows what it has. */
async function readCursor(folder: string): Promise<Position> {
  try {
    const value = JSON.parse(await readFile(cursorPath(folder), 'utf8')) as Partial<Position>;
    if (Number.isSafeInteger(value.segment) && Number.isSafeInteger(value.offset)) return value as Position;
  } catch {
    // Missing at the first start, torn never (it is renamed into place).
  }
  return { segment: 0, offset: 0 };
}

async function writeCursor(folder: string, position: Position): Promise<void> {
  const temporary = `${cursorPath(folder)}.new`;
  const file = await open(temporary, 'w', 0o600);
  try {
    await file.writeFile(JSON.stringify(position));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, cursorPath(folder));
  await syncFolder(folder);
}
