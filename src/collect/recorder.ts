/**
 * The main thread's side of recording: takes finished exchanges without ever waiting, copies their bytes once into one
 * buffer, and hands that over to the worker thread (recorder-worker.ts), which does all the work. The queue between
 * the two is bounded by count and by bytes; over it the newest exchange is dropped and counted. A worker that dies or
 * hangs is replaced (recorder-thread.ts); what it had not acknowledged is counted as lost, and what it knew of conversations
 * is told to the next.
 *
 * Bytes are copied, never transferred as they are: network buffers are slices of larger ones that others still use.
 */

import { openPolicies } from '../priority.ts';
import { createBuffers } from './buffers.ts';
import { type Exchange, exchangeBytes, packExchanges } from './exchange.ts';
import { createKnownThreads } from './known-threads.ts';
import { createRecorderPriority, type Scheduled } from './recorder-priority.ts';
import { keepThread, type LostReason } from './recorder-thread.ts';
import type { PiiOfAgents } from './redact/settings.ts';
import type { JournalEntry } from './signal.ts';
import { exchangeOf, type TurnInput } from './turn-input.ts';

export type SignalEntry = Extract<JournalEntry, { kind: 'signal' | 'attachment' }>;
/** `failed`: the disk did not take it, or the worker died first. */
export type Signalled = 'journalled' | 'full' | 'failed';

export const dropReasons = ['queue-full', 'journal-full', 'disk', 'broken', 'crash', 'hang', 'closed'] as const;
export type DropReason = (typeof dropReasons)[number];

export type RecorderStats = {
  /** Exchanges handed over and not yet journalled, and their bytes. */
  readonly queueDepth: number;
  readonly queueBytes: number;
  readonly journalBytes: number;
  /** Entries the database has taken. */
  readonly recorded: number;
  readonly journalled: number;
  readonly dropped: Readonly<Record<DropReason, number>>;
  /** Pieces of personal data replaced, by kind. */
  readonly redactions: Readonly<Record<string, number>>;
  /** Turns whose exact token ids were left out because their text was redacted. */
  readonly tokensDropped: number;
  /** Turns kept without content because redaction failed or would have taken too long. */
  readonly contentDropped: number;
  /** Values that no column holds and fields too large to be read back: made fit or left out of their turns. */
  readonly unfit: number;
  /** Damaged places skipped in the journal. */
  readonly corrupt: number;
  /** Entries the database refused for good (journal/rejected.jsonl). */
  readonly refused: number;
  readonly restarts: number;
  readonly sinkLagMs: number;
  readonly sinkUp: boolean;
  readonly diskOk: boolean;
  /** What was odd about the journal at the start, and what was done about it, a sentence each. */
  readonly found: readonly string[];
};

export type Recorder = {
  /** What any door has to record. False: dropped, and counted. Returns at once. */
  record(input: TurnInput): boolean;
  /** Resolves after the entry is on disk, or with why it is not. */
  signal(entry: SignalEntry): Promise<Signalled>;
  stats(): RecorderStats;
  /** Waits until everything is in the database; false when that took longer than `timeoutMs`. */
  drain(timeoutMs: number): Promise<boolean>;
  /** Journals what is queued and stops. What the database has not taken stays in the journal. */
  close(): Promise<void>;
};

export type RecorderOptions = {
  readonly home: string;
  readonly databaseUrl: string | null;
  /** What user ids are hashed with (store/secret.ts). */
  readonly secret: string;
  /** What is personal, by agent; without it the built-in recognizers alone. */
  readonly pii?: PiiOfAgents;
  /** Most exchanges waiting for the worker, and most bytes of them. */
  readonly queueLength?: number;
  readonly queueBytes?: number;
  /** Most bytes of journal on disk. */
  readonly journalBytes?: number;
  readonly segmentBytes?: number;
  /** URL of a module that exports `openSink` (sink.ts); store/sink.ts without it. */
  readonly sinkModule?: string;
  /** How long the worker may be without a word before it is replaced. */
  readonly hangMs?: number;
  /** How long after the worker is ready its spare is loaded. */
  readonly spareAfterMs?: number;
  readonly log?: { warn(details: object, message: string): void };
};

/** What crosses the threads. */
export type WorkerData = {
  readonly home: string;
  readonly databaseUrl: string | null;
  readonly secret: string;
  readonly pii: PiiOfAgents | null;
  readonly journalBytes: number | null;
  readonly segmentBytes: number | null;
  readonly sinkModule: string | null;
};
export type ToWorker =
  /**
   * Opens the journal and takes exchanges. `threads`: the conversations known so far (known-threads.ts), oldest first; null: none,
   * so that the journal and the database are asked first.
   */
  | { readonly kind: 'begin'; readonly threads: readonly string[] | null }
  /** `rows`: JSON of so many exchanges' rows; `bytes`: request and answer of each, in that order, and room for more. */
  | { readonly kind: 'exchanges'; readonly count: number; readonly rows: string; readonly bytes: ArrayBuffer }
  | { readonly kind: 'signal'; readonly ticket: number; readonly entry: SignalEntry }
  | { readonly kind: 'drain'; readonly ticket: number; readonly timeoutMs: number }
  /** It gets only what nobody else wants from now on, or no longer. */
  | { readonly kind: 'yields'; readonly isIdle: boolean }
  | { readonly kind: 'close' };
export type WorkerCounts = Omit<RecorderStats, 'queueDepth' | 'queueBytes' | 'restarts'>;
export type FromWorker =
  /** Its code is there; it waits to be told to begin. */
  | { readonly kind: 'loaded' }
  | { readonly kind: 'ready'; readonly scheduled: Scheduled }
  /** Exchanges done with since the last message, journalled or dropped, and the points that conversations have reached by them. */
  | {
      readonly kind: 'progress';
      readonly exchanges: number;
      readonly bytes: number;
      readonly counts: WorkerCounts;
      readonly threads: string | null;
    }
  /** Points that earlier processes had reached. */
  | { readonly kind: 'learned'; readonly threads: string }
  | { readonly kind: 'signalled'; readonly ticket: number; readonly result: Signalled }
  | { readonly kind: 'drained'; readonly ticket: number; readonly done: boolean }
  /** What came with `exchanges` and is read: it may be used again. */
  | { readonly kind: 'emptied'; readonly bytes: ArrayBuffer }
  /** A process of the embedded database is to get only what nobody else wants, or no longer (store/give-way.ts). */
  | { readonly kind: 'backend'; readonly pid: number; readonly isIdle: boolean }
  | { readonly kind: 'problem'; readonly message: string }
  | { readonly kind: 'closed' };

/** Exchanges are handed over together, after this long or once this much has come together: waking a thread costs. */
const HAND_OVER_MS = 5;
const HAND_OVER_BYTES = 1024 * 1024;
/** Far longer than any work a healthy worker does in one go, also on a machine that is short of processors. */
const HANG_MS = 20_000;
/** How often it is looked whether the worker's thread should give way. */
const LOOK_MS = 250;

export async function startRecorder(options: RecorderOptions): Promise<Recorder> {
  const queueLength = options.queueLength ?? 100_000;
  const queueBytes = options.queueBytes ?? 256 * 1024 * 1024;
  const workerData: WorkerData = {
    home: options.home,
    databaseUrl: options.databaseUrl,
    secret: options.secret,
    pii: options.pii ?? null,
    journalBytes: options.journalBytes ?? null,
    segmentBytes: options.segmentBytes ?? null,
    sinkModule: options.sinkModule ?? null,
  };

  let pending: Exchange[] = []; // not handed over yet
  let pendingBytes = 0;
  let timer: NodeJS.Timeout | undefined;
  const sent = { exchanges: 0, bytes: 0 }; // handed over, not acknowledged
  let handed: { readonly at: number; left: number }[] = []; // the same, oldest first
  let came = 0;
  let counts = noCounts();
  let before = noCounts(); // what workers that are gone had counted
  const lost: Partial<Record<DropReason, number>> = {};
  let closing = false;
  let nextTicket = 1;
  const threads = createKnownThreads();
  /** Oldest first. `settle`: null says that the worker is gone. */
  const tickets = new Map<number, { readonly at: number; settle(message: FromWorker | null): void }>();
  const buffers = createBuffers();
  const policies = openPolicies();
  const priority = createRecorderPriority(policies, (isIdle) => void thread.post({ kind: 'yields', isIdle }));
  let looking: NodeJS.Timeout | undefined;

  const drop = (reason: DropReason, n = 1) => {
    lost[reason] = (lost[reason] ?? 0) + n;
  };

  function onMessage(message: FromWorker): void {
    switch (message.kind) {
      case 'progress':
        sent.exchanges -= message.exchanges;
        sent.bytes -= message.bytes;
        settled(message.exchanges);
        counts = message.counts;
        if (message.threads !== null) threads.add(message.threads);
        break;
      case 'learned':
        threads.addOlder(message.threads);
        break;
      case 'signalled':
      case 'drained':
        tickets.get(message.ticket)?.settle(message);
        tickets.delete(message.ticket);
        break;
      case 'emptied':
        buffers.give(message.bytes);
        break;
      case 'backend':
        void policies.setIdle(message.pid, message.isIdle);
        break;
      case 'problem':
        options.log?.warn({}, message.message);
        break;
      case 'loaded':
      case 'ready':
      case 'closed':
        break;
      default:
        message satisfies never;
    }
  }

  function onLost(reason: LostReason): void {
    before = addCounts(before, counts);
    counts = { ...noCounts(), sinkUp: counts.sinkUp, journalBytes: counts.journalBytes, found: counts.found };
    drop(reason, sent.exchanges);
    sent.exchanges = 0;
    sent.bytes = 0;
    handed = [];
    for (const { settle } of tickets.values()) settle(null);
    tickets.clear();
  }

  function settled(exchanges: number): void {
    let done = 0;
    for (let left = exchanges; left > 0 && done < handed.length; ) {
      const oldest = handed[done]!;
      const taken = Math.min(left, oldest.left);
      oldest.left -= taken;
      left -= taken;
      if (oldest.left === 0) done++;
    }
    if (done > 0) handed.splice(0, done);
  }

  function look(): void {
    const now = performance.now();
    const [ticket] = tickets.values();
    const waiting = {
      full: Math.max(sent.exchanges / queueLength, sent.bytes / queueBytes),
      oldestMs: handed.length === 0 ? 0 : now - handed[0]!.at,
      askedMs: ticket === undefined ? 0 : now - ticket.at,
    };
    if (priority.look(came, now, waiting)) return;
    clearInterval(looking);
    looking = undefined;
    buffers.clear();
  }

  const thread = await keepThread({
    data: workerData,
    begin: (again) => ({ kind: 'begin', threads: again ? threads.pieces() : null }),
    onReady: (scheduled) => {
      priority.of(scheduled);
      handOver();
    },
    onMessage,
    onLost,
    warn: (details, message) => options.log?.warn(details, message),
    hangMs: options.hangMs ?? HANG_MS,
    ...(options.spareAfterMs === undefined ? {} : { spareAfterMs: options.spareAfterMs }),
  });

  function handOver(): void {
    clearTimeout(timer);
    timer = undefined;
    if (pending.length === 0 || !thread.isReady()) return;
    const { rows, bytes } = packExchanges(pending, buffers.take(pendingBytes));
    const count = pending.length;
    sent.exchanges += count;
    sent.bytes += pendingBytes;
    came += count;
    handed.push({ at: performance.now(), left: count });
    thread.post({ kind: 'exchanges', count, rows, bytes }, [bytes]);
    looking ??= setInterval(look, LOOK_MS).unref();
    pending = [];
    pendingBytes = 0;
  }

  function ask(make: (ticket: number) => ToWorker): Promise<FromWorker | null> {
    if (closing || !thread.isReady()) return Promise.resolve(null);
    const ticket = nextTicket++;
    return new Promise((resolve) => {
      tickets.set(ticket, { at: performance.now(), settle: resolve });
      thread.post(make(ticket));
    });
  }

  return {
    record(input) {
      const exchange = exchangeOf(input);
      const bytes = exchangeBytes(exchange);
      if (closing) {
        drop('closed');
        return false;
      }
      if (sent.exchanges + pending.length >= queueLength || sent.bytes + pendingBytes + bytes > queueBytes) {
        drop('queue-full');
        return false;
      }
      pending.push(exchange);
      pendingBytes += bytes;
      if (pendingBytes >= HAND_OVER_BYTES) handOver();
      else timer ??= setTimeout(handOver, HAND_OVER_MS);
      return true;
    },

    async signal(entry) {
      const answer = await ask((ticket) => ({ kind: 'signal', ticket, entry }));
      return answer?.kind === 'signalled' ? answer.result : 'failed';
    },

    stats() {
      const sum = addCounts(before, counts);
      const dropped = { ...sum.dropped };
      for (const reason of dropReasons) dropped[reason] += lost[reason] ?? 0;
      return {
        ...sum,
        dropped,
        queueDepth: sent.exchanges + pending.length,
        queueBytes: sent.bytes + pendingBytes,
        restarts: thread.restarts(),
        sinkLagMs: counts.sinkLagMs,
        sinkUp: counts.sinkUp,
        diskOk: counts.diskOk,
        journalBytes: counts.journalBytes,
        found: counts.found,
      };
    },

    async drain(timeoutMs) {
      handOver();
      const answer = await ask((ticket) => ({ kind: 'drain', ticket, timeoutMs }));
      return answer?.kind === 'drained' && answer.done;
    },

    async close() {
      if (closing) return;
      handOver();
      closing = true;
      drop('closed', pending.length);
      pending = [];
      pendingBytes = 0;
      clearInterval(looking);
      await priority.end();
      await thread.close();
      policies.close();
    },
  };
}

export function noCounts(): WorkerCounts {
  return {
    journalBytes: 0,
    recorded: 0,
    journalled: 0,
    dropped: Object.fromEntries(dropReasons.map((reason) => [reason, 0])) as Record<DropReason, number>,
    redactions: {},
    tokensDropped: 0,
    contentDropped: 0,
    unfit: 0,
    corrupt: 0,
    refused: 0,
    sinkLagMs: 0,
    sinkUp: true,
    diskOk: true,
    found: [],
  };
}

function addCounts(a: WorkerCounts, b: WorkerCounts): WorkerCounts {
  const dropped = { ...a.dropped };
  for (const reason of dropReasons) dropped[reason] += b.dropped[reason];
  const redactions = { ...a.redactions };
  for (const [kind, n] of Object.entries(b.redactions)) redactions[kind] = (redactions[kind] ?? 0) + n;
  return {
    ...b,
    recorded: a.recorded + b.recorded,
    journalled: a.journalled + b.journalled,
    dropped,
    redactions,
    tokensDropped: a.tokensDropped + b.tokensDropped,
    contentDropped: a.contentDropped + b.contentDropped,
    unfit: a.unfit + b.unfit,
    corrupt: a.corrupt + b.corrupt,
    refused: a.refused + b.refused,
  };
}
