/**
 * Moves what the journal acknowledged into the sink, in order, batch by batch, for as long as it takes: unread.ts has the
 * next batch, deliver.ts gets it into the sink, and the durable cursor moves behind it, now and then rather than per
 * batch, since the sink recognises what it has by id. Damaged bytes are skipped and reported. A consumed segment is
 * deleted even if the cursor could not be written: a full disk must be able to empty itself.
 *
 * While more comes in than the sink takes, the pump rests between batches: what waits is safe in the journal, and the
 * processors belong to answering. As soon as nobody is answered any more it rests no longer, and what has waited too long gives way to
 * nobody until it is done.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Line } from '../store/line.ts';
import { type Position, resumeAt, writeCursor } from './cursor.ts';
import { createDelivery } from './deliver.ts';
import type { Journal } from './journal.ts';
import { keepRejected } from './rejected.ts';
import type { Sink } from './sink.ts';
import { createUnread, type Damaged } from './unread.ts';

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
  /** What is in the sink leaves the disk after about this long, however little follows it. */
  readonly leaveAfterMs?: number;
  /** First and longest wait before trying the sink again. */
  readonly backoffMs?: readonly [number, number];
  /** How long a write may be silent before its connection is given up, at first and at most. */
  readonly silenceMs?: readonly [number, number];
  /** From when on what waits gives way to nobody. */
  readonly lateMs?: number;
  /** Nobody is being answered now, so there is nobody to give way to. */
  readonly isQuiet?: () => boolean;
  /** Everything acknowledged so far is in the sink. */
  readonly onCaughtUp?: () => void;
  readonly onDamage?: (damaged: Damaged) => void;
  readonly onProblem?: (message: string) => void;
};

export type PumpStats = {
  readonly stored: number;
  readonly refused: number;
  readonly corrupt: number;
  /** Age of the oldest acknowledged entry that is not in the sink yet. */
  readonly lagMs: number;
  /** The last thing asked of the sink worked, and it has not been silent since. */
  readonly up: boolean;
};

export type Pump = {
  /** Why the cursor that was found could not be used, and what was done instead; null when there is nothing to say. */
  readonly found: string | null;
  /** An acknowledged append, to be called in the journal's order; `line`: what the payload says, where that is known. */
  offer(payload: Buffer, start: Position, end: Position, line?: Line): void;
  stats(): PumpStats;
  /** Resolves when everything acknowledged so far is in the sink, or at the latest after `timeoutMs`. */
  settled(timeoutMs: number): Promise<boolean>;
  /** Ends after the batch under way, or soon without it; writes the cursor, closes the sink. */
  stop(): Promise<void>;
};

/** Rest this many times as long as the last batch took, and no longer than this. */
const REST = 4;
const LONGEST_REST_MS = 1000;
/** An entry that has waited this long ends all resting and giving way. */
const PATIENCE_MS = 10_000;
/** How often it is looked whether there is still a reason to rest, and whether something has waited too long. */
const LOOK_MS = 25;
const LATE_LOOK_MS = 1000;

/** How long to leave the sink alone after a batch; the bytes are those that waited when it began and when it ended. */
export function rest(batch: { tookMs: number; waitingBefore: number; waitingAfter: number; lagMs: number }): number {
  const fallsBehind = batch.waitingAfter >= batch.waitingBefore;
  return fallsBehind && batch.lagMs < PATIENCE_MS ? Math.min(LONGEST_REST_MS, REST * batch.tookMs) : 0;
}

export async function startPump(options: PumpOptions): Promise<Pump> {
  const { journal } = options;
  const gatherMs = options.gatherMs ?? 100;
  const batchEntries = options.batchEntries ?? 3000;
  const cursorEveryMs = options.cursorEveryMs ?? 1000;
  const leaveAfterMs = options.leaveAfterMs ?? 300_000;
  const backoffMs = options.backoffMs ?? [100, 5000];
  const lateMs = options.lateMs ?? PATIENCE_MS;
  const isQuiet = options.isQuiet ?? (() => false);
  const problem = options.onProblem ?? (() => {});
  const stopping = new AbortController();
  const counts = { stored: 0, refused: 0, corrupt: 0 };

  const resume = await resumeAt(journal.folder, journal.found);
  const unread = createUnread({
    journal,
    from: resume.from,
    windowBytes: options.windowBytes ?? 64 * 1024 * 1024,
    batchEntries,
    batchBytes: options.batchBytes ?? 4 * 1024 * 1024,
    onDamage: (damaged) => {
      counts.corrupt++;
      options.onDamage?.(damaged);
    },
  });
  const delivery = createDelivery({
    openSink: options.openSink,
    reject,
    backoffMs,
    silenceMs: options.silenceMs ?? [15_000, 240_000],
    onProblem: problem,
    stop: stopping.signal,
  });

  let saved = unread.position();
  let savedAt = 0;
  let cursorFails = false;
  let removeFails = false;
  let caughtUpAt = Date.now();
  let endedAt = Date.now();
  let wake: () => void = () => {};
  let hurries = false;
  const looking = setInterval(
    () => {
      const wanted = hurries ? !unread.isEmpty() : lagMs() >= lateMs;
      if (wanted === hurries) return;
      hurries = wanted;
      delivery.hurry(wanted);
    },
    Math.min(LATE_LOOK_MS, lateMs),
  ).unref();

  /** What cannot even be put aside is counted: nothing behind it may wait for it. */
  async function reject(line: Line, reason: string): Promise<void> {
    counts.refused++;
    try {
      if (!(await keepRejected(journal.folder, line, reason)))
        problem(`An entry was refused (${reason}) and not kept: rejected.jsonl is full.`);
    } catch (error) {
      problem(`An entry was refused (${reason}) and could not be kept in rejected.jsonl: ${String(error)}.`);
    }
  }

  function lagMs(): number {
    return unread.isEmpty() ? 0 : Math.max(0, Date.now() - (unread.oldestAt() ?? caughtUpAt));
  }

  const pause = (ms: number): Promise<void> =>
    ms === 0 ? Promise.resolve() : sleep(ms, undefined, { signal: stopping.signal }).catch(() => {});

  async function restFor(ms: number): Promise<void> {
    const until = Date.now() + ms;
    for (let left = ms; left > 0 && !isQuiet() && !stopping.signal.aborted; left = until - Date.now())
      await pause(Math.min(LOOK_MS, left));
  }

  /** Until something is offered, but no longer than a cursor may lag behind a journal that has gone quiet. */
  function idle(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, cursorEveryMs);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async function remove(segment: number): Promise<void> {
    try {
      await journal.remove(segment);
      removeFails = false;
    } catch (error) {
      if (!removeFails) problem(`Segment ${segment} is done with and cannot be deleted: ${String(error)}.`);
      removeFails = true;
    }
  }

  async function save(force: boolean): Promise<void> {
    const position = unread.position();
    const id = journal.segments().find(({ segment }) => segment === position.segment)?.id;
    for (const segment of unread.finished()) await remove(segment);
    const moved = saved.segment !== position.segment || saved.offset !== position.offset;
    if (!moved || (!force && Date.now() - savedAt < cursorEveryMs)) return;
    savedAt = Date.now();
    try {
      await writeCursor(journal.folder, { ...position, id: id ?? null });
      saved = position;
      cursorFails = false;
    } catch (error) {
      // Only costs reading again after a crash.
      if (!cursorFails) problem(`The journal's cursor cannot be written: ${String(error)}.`);
      cursorFails = true;
    }
  }

  async function run(): Promise<void> {
    await delivery.open();
    while (!stopping.signal.aborted) {
      const batch = await unread.next();
      if (batch === null) {
        caughtUpAt = Date.now();
        if (Date.now() - endedAt >= leaveAfterMs) {
          endedAt = Date.now();
          await journal.endSegment();
        }
        await save(false);
        if (unread.isEmpty() && !stopping.signal.aborted) await idle();
        continue;
      }
      const began = Date.now();
      const waitingBefore = unread.bytes();
      if (batch.lines.length > 0) {
        const stored = await delivery.deliver(batch.lines);
        if (stored === null) break;
        counts.stored += stored;
      }
      unread.advance(batch.end);
      await save(false);
      const tookMs = Date.now() - began;
      const waitingAfter = unread.bytes();
      if (unread.isEmpty()) options.onCaughtUp?.();
      // What is left of a rush does not wait for company.
      const wasShort = batch.lines.length < batchEntries;
      if (wasShort && unread.isShort()) await pause(gatherMs);
      else await restFor(rest({ tookMs, waitingBefore, waitingAfter, lagMs: lagMs() }));
    }
    await save(true);
    await delivery.close();
  }

  /** A file system in trouble is waited out like a database in trouble. */
  async function runForever(): Promise<void> {
    for (;;) {
      try {
        await run();
        return;
      } catch (error) {
        problem(`Moving the journal into the database failed: ${String(error)}. Trying again.`);
        unread.forget();
        if (stopping.signal.aborted) return;
        await pause(backoffMs[1]);
      }
    }
  }
  const running = runForever();

  return {
    found: resume.problem,
    offer(payload, start, end, line) {
      unread.offer(payload, start, end, line);
      wake();
    },
    stats: () => ({ ...counts, up: delivery.isUp(), lagMs: lagMs() }),
    async settled(timeoutMs) {
      const until = Date.now() + timeoutMs;
      while (!unread.isEmpty() && Date.now() < until && !stopping.signal.aborted) await sleep(10);
      return unread.isEmpty();
    },
    async stop() {
      clearInterval(looking);
      stopping.abort();
      wake();
      await running;
    },
  };
}
