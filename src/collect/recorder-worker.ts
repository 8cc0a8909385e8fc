/**
 * The worker thread of recording: exchanges in, turns journalled, journal pumped into the database. Once its code is loaded
 * it waits to be told to begin. It reads one message at a time, gives way between exchanges so that disk and database work
 * goes on, and reports progress back within milliseconds. Started by recorder.ts through recorder-boot.js; nothing else
 * imports it.
 */
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { isPerThread, mayReturn, thisThread } from '../priority.ts';
import { encodeLine, type Naming, readLine } from '../store/line.ts';
import { type MadeLine, makeLine, makeSiblingLine } from '../store/made-line.ts';
import { readSignedLine, signLine } from '../store/signed-line.ts';
import { isWorthReturning } from './buffers.ts';
import { type Exchange, exchangeBytes, unpackExchanges } from './exchange.ts';
import { type Appended, type Journal, openJournal } from './journal.ts';
import { scanRecords } from './journal-record.ts';
import { packThreads, unpackThreads } from './known-threads.ts';
import { makeAttachment, makeSignal, makeTurn } from './make-turn.ts';
import { startPump } from './pump.ts';
import {
  type DropReason,
  type FromWorker,
  noCounts,
  type SignalEntry,
  type ToWorker,
  type WorkerCounts,
  type WorkerData,
} from './recorder.ts';
import type { Scheduled } from './recorder-priority.ts';
import { openAgentRules } from './redact/agent-rules.ts';
import { openSegment } from './segments.ts';
import { createSentMessages } from './sent-messages.ts';
import { makeSibling } from './sibling.ts';
import type { JournalEntry } from './signal.ts';
import type { OpenSink, Sink } from './sink.ts';
import { createThreader, type ThreadPoint } from './thread.ts';
import type { Turn } from './turn.ts';
import { uuidv7 } from './uuid.ts';
import { warmUp } from './warm-up.ts';

/** How long the event loop may be held by parsing before disk and database get their turn: a batch takes several answers of theirs. */
const SLICE_MS = 0.5;
/** How often it is looked whether there is something to report. */
const LOOK_MS = 250;
/** Without anything new only a sign of life is given, after so many looks: each report wakes the thread that answers. */
const SILENT_LOOKS = 4;
/** Acknowledgements wait this long for company: each one interrupts the thread that answers requests. */
const ACKNOWLEDGE_MS = 10;
const THREAD_MEMORY_MS = 60 * 60 * 1000;
/**
 * How long the first start waits for the database's memory of conversations before exchanges are placed without it. A thread
 * that takes another's place is told what that one knew, and waits for nothing.
 */
const SEED_MS = 1000;
/** Journal read back at a start so that conversations under way are recognised. */
const SEED_BYTES = 32 * 1024 * 1024;
/** Conversations remembered in one go. */
const SEED_PIECE = 500;
/**
 * When the pump has looked this often (pump.ts) and no exchange came, nobody is being answered. Not by the clock: while answering
 * takes the processors this thread stands still, and what came meanwhile is read only after a look.
 */
const QUIET_LOOKS = 3;
/** Of closing's time, how long it waits for exchanges that are still being journalled. */
const QUIET_MS = 8000;

const options = workerData as WorkerData;
const port = parentPort;
if (port === null) throw new Error('recorder-worker.ts runs as a worker thread of recorder.ts, not by itself.');
const post = (message: FromWorker, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer);

const loadSink = () => (options.sinkModule === null ? import('../store/sink.ts') : import(options.sinkModule));
// One that cannot be loaded is tried again, and said, when it is opened.
await loadSink().catch(() => {});
const agentRules = await openAgentRules(options.pii, options.secret);
warmUp();
post({ kind: 'loaded' });
const told = await new Promise<ToWorker>((resolve) => port.once('message', resolve));
const threads = told.kind === 'begin' ? told.threads : null;

const journal = await openJournal({
  folder: join(options.home, 'journal'),
  ...(options.journalBytes === null ? {} : { maxBytes: options.journalBytes }),
  ...(options.segmentBytes === null ? {} : { segmentBytes: options.segmentBytes }),
});
let seeded = () => {};
const threadsKnown = new Promise<void>((resolve) => {
  seeded = resolve;
});
const untold = [...(threads ?? [])];
const threader = createThreader({
  secret: options.secret,
  idleMs: THREAD_MEMORY_MS,
  // Newest first: what is continued next was most likely said last.
  older: () => (untold.length === 0 ? null : unpackThreads(untold.pop() as string)),
});
if (threads === null) learn(await recentThreads(journal));

const scheduled: Scheduled = {
  thread: isPerThread ? thisThread() : null,
  niceness: getPriority(),
  free: mayReturn(),
};
let isIdle = false;
let looksWithout = 0; // since exchanges came last
const pump = await startPump({
  journal,
  openSink,
  // Nobody waits for a thread that is idle, so it need not rest.
  isQuiet: () => isIdle || ++looksWithout > QUIET_LOOKS,
  onCaughtUp: reportSoon,
  onDamage: ({ segment, offset, bytes }) =>
    problem(`Journal segment ${segment} is damaged at byte ${offset}: ${bytes} bytes were skipped.`),
  onProblem: problem,
});

const found = [...journal.strange, ...(pump.found === null ? [] : [pump.found])];
for (const odd of found) problem(odd);

const dropped = { ...noCounts().dropped };
const redactions: Record<string, number> = {};
let journalled = 0;
let tokensDropped = 0;
let contentDropped = 0;
let unfit = 0;

const sentMessages = createSentMessages(options.secret);
/** Still packed: what waits long is not worth the objects, which would be copied from one generation to the next. */
const inbox: Extract<ToWorker, { kind: 'exchanges' }>[] = [];
let working = false;
let unfinished = 0; // appends and exchanges not settled yet
const finishedSince = { exchanges: 0, bytes: 0, threads: [] as ThreadPoint[] };
let reporting = false;
let reported = '';
let looksSince = 0;

port.on('message', (message: ToWorker) => {
  switch (message.kind) {
    case 'exchanges':
      looksWithout = 0;
      inbox.push(message);
      if (!working) {
        working = true;
        void work();
      }
      break;
    case 'signal':
      void signal(message.entry).then((result) => post({ kind: 'signalled', ticket: message.ticket, result }));
      break;
    case 'drain':
      void drain(message.timeoutMs).then((done) => {
        report();
        post({ kind: 'drained', ticket: message.ticket, done });
      });
      break;
    case 'yields':
      isIdle = message.isIdle;
      break;
    case 'close':
      void close();
      break;
    case 'begin': // once, above
      break;
    default:
      message satisfies never;
  }
});
const timer = setInterval(() => {
  if (++looksSince >= SILENT_LOOKS || JSON.stringify(counts()) !== reported) report();
}, LOOK_MS);
// Waited for before the first exchange comes, not by it: what waits here would be lost with the process.
if (threads === null)
  await Promise.race([threadsKnown, new Promise<void>((resolve) => setTimeout(resolve, SEED_MS).unref())]);
post({ kind: 'ready', scheduled });
while (threader.learn()) await new Promise(setImmediate);

async function work(): Promise<void> {
  let since = performance.now();
  for (let message = inbox.shift(); message !== undefined; message = inbox.shift()) {
    for (const exchange of unpackExchanges(message.rows, message.bytes)) {
      take(exchange);
      if (performance.now() - since > SLICE_MS) {
        await new Promise(setImmediate);
        since = performance.now();
      }
    }
    // What was read is text by now, and nothing looks at the bytes again.
    if (isWorthReturning(message.bytes)) post({ kind: 'emptied', bytes: message.bytes }, [message.bytes]);
  }
  working = false;
}

function take(exchange: Exchange): void {
  const bytes = exchangeBytes(exchange);
  let line: MadeLine;
  let point: ThreadPoint | null;
  let naming: ReturnType<typeof sentMessages.naming>;
  try {
    const { rules, known, numbersOf } = agentRules.of(exchange.agent);
    // Written out: spread together, it took a twentieth of this thread's time.
    const context = { threader, secret: options.secret, now: Date.now(), newId: uuidv7, rules, known, numbersOf };
    const made = makeTurn(exchange, context);
    for (const kind in made.turn.redactions) redactions[kind] = (redactions[kind] ?? 0) + made.turn.redactions[kind]!;
    if (made.tokensDropped) tokensDropped++;
    if (made.contentDropped) contentDropped++;
    unfit += made.unfit;
    naming = sentMessages.naming(made.turn, performance.now());
    line = lineOf(made.turn, exchange, naming);
    point = exchange.sibling === undefined ? pointOf(made.turn) : null; // no conversation goes on from a sibling
  } catch (error) {
    // No content in the message: it has not been redacted.
    problem(`Turn ${exchange.id} could not be recorded (${error instanceof Error ? error.name : 'unknown error'}).`);
    finish(bytes, 'broken', null);
    return;
  }
  append(line, (result) => {
    const reason = dropReason(result);
    if (reason === null) naming.acknowledged();
    finish(bytes, reason, point);
  });
}

function lineOf(turn: Turn, { sibling, clientKey }: Exchange, naming: Naming): MadeLine {
  return sibling === undefined
    ? makeLine(turn, naming, clientKey)
    : makeSiblingLine(makeSibling(turn, sibling), clientKey);
}

function finish(bytes: number, reason: DropReason | null, point: ThreadPoint | null): void {
  if (reason === null) journalled++;
  else dropped[reason]++;
  if (reason === null && point !== null) finishedSince.threads.push(point);
  finishedSince.exchanges++;
  finishedSince.bytes += bytes;
  reportSoon();
}

function append({ text, journalled }: MadeLine, settle: (result: Appended) => void): void {
  unfinished++;
  journal.add(text, (result) => {
    unfinished--;
    if (result.kind === 'journalled') pump.offer(result.payload, result.start, result.end, journalled(result.payload));
    settle(result);
  });
}

function dropReason(result: Appended): DropReason | null {
  if (result.kind === 'journalled') return null;
  return result.kind === 'full' ? 'journal-full' : 'disk';
}

async function signal(raw: SignalEntry): Promise<'journalled' | 'full' | 'failed'> {
  let entry: JournalEntry;
  try {
    if (raw.kind === 'signal') {
      const made = makeSignal(raw.signal, options.secret, agentRules.of(raw.signal.agent));
      for (const [kind, n] of Object.entries(made.counts)) redactions[kind] = (redactions[kind] ?? 0) + n;
      entry = { kind: 'signal', signal: made.signal };
    } else entry = { kind: 'attachment', attachment: makeAttachment(raw.attachment, options.secret) };
  } catch {
    return 'failed';
  }
  const by = raw.kind === 'signal' ? raw.signal.key : raw.attachment.by;
  const line = { text: signLine(encodeLine(entry), by), journalled: readSignedLine };
  const result = await new Promise<Appended>((settle) => append(line, settle));
  if (result.kind === 'journalled') journalled++;
  reportSoon();
  return result.kind;
}

async function openSink(): Promise<Sink> {
  const module: { openSink: OpenSink } = await loadSink();
  // Not by this thread, which may have given way itself.
  const setIdle = (pid: number, idle: boolean) => post({ kind: 'backend', pid, isIdle: idle });
  const { home, databaseUrl } = options;
  const sink = await module.openSink({ home, databaseUrl, ...(scheduled.free ? { setIdle } : {}) });
  try {
    const known = (await sink.threads?.(Date.now() - THREAD_MEMORY_MS)) ?? [];
    // Newest first, and in pieces, since answers come meanwhile.
    for (let end = known.length; end > 0; end -= SEED_PIECE) {
      learn(known.slice(Math.max(0, end - SEED_PIECE), end));
      await new Promise(setImmediate);
    }
  } catch (error) {
    problem(`Recent conversations could not be read, so some will begin a new trajectory: ${String(error)}.`);
  }
  seeded();
  return sink;
}

/** The turn's columns; null for other kinds, and for bytes that are no line: the pump reports those. */
function turnIn(payload: Buffer): Turn | null {
  try {
    const { kind, json } = readLine(payload);
    return kind === 'turn' ? (JSON.parse(json.toString()) as Turn) : null;
  } catch {
    return null;
  }
}

/** Seeds what earlier processes knew, and has it kept for the thread that may follow this one. */
function learn(points: readonly ThreadPoint[]): void {
  threader.seed(points);
  if (points.length > 0) post({ kind: 'learned', threads: packThreads(points) });
}

/** Where a whole answer left its conversation. */
function pointOf({ threadKey, trajectory, status, startedAt, latencyMs }: Turn): ThreadPoint | null {
  return threadKey === null || status !== 'ok' ? null : { threadKey, trajectory, at: startedAt + latencyMs };
}

async function recentThreads(from: Journal): Promise<ThreadPoint[]> {
  const points: ThreadPoint[] = [];
  const since = Date.now() - THREAD_MEMORY_MS;
  let left = SEED_BYTES;
  for (const { segment, bytes } of from.segments().reverse()) {
    if (left <= 0) break;
    const start = Math.max(0, bytes - left);
    left -= bytes;
    for (const { payload } of scanRecords(await readBytes(from.folder, segment, start, bytes), 0).records) {
      const turn = turnIn(payload);
      const point = turn === null ? null : pointOf(turn);
      if (point !== null && point.at >= since) points.push(point);
    }
  }
  return points;
}

async function readBytes(folder: string, segment: number, start: number, end: number): Promise<Buffer> {
  const file = await openSegment(folder, segment);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(end - start), 0, end - start, start);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

async function quiet(timeoutMs: number): Promise<boolean> {
  const until = Date.now() + timeoutMs;
  while ((working || unfinished > 0) && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 5));
  return !working && unfinished === 0;
}

async function drain(timeoutMs: number): Promise<boolean> {
  const until = Date.now() + timeoutMs;
  return (await quiet(timeoutMs)) && (await pump.settled(until - Date.now()));
}

async function close(): Promise<void> {
  await quiet(QUIET_MS);
  await pump.stop();
  await journal.close();
  clearInterval(timer);
  report();
  post({ kind: 'closed' });
  port?.close(); // nothing keeps the thread after this
}

function reportSoon(): void {
  if (reporting) return;
  reporting = true;
  setTimeout(() => {
    reporting = false;
    report();
  }, ACKNOWLEDGE_MS);
}

function report(): void {
  const { exchanges, bytes, threads: points } = finishedSince;
  const now = counts();
  post({
    kind: 'progress',
    exchanges,
    bytes,
    counts: now,
    threads: points.length > 0 ? packThreads(points) : null,
  });
  finishedSince.exchanges = 0;
  finishedSince.bytes = 0;
  finishedSince.threads = [];
  reported = JSON.stringify(now);
  looksSince = 0;
}

function counts(): WorkerCounts {
  const { stored, refused, corrupt, lagMs, up } = pump.stats();
  return {
    journalBytes: journal.bytes(),
    recorded: stored,
    journalled,
    dropped,
    redactions,
    tokensDropped,
    contentDropped,
    unfit,
    corrupt,
    refused,
    sinkLagMs: lagMs,
    sinkUp: up,
    diskOk: journal.healthy(),
    found,
  };
}

function problem(message: string): void {
  post({ kind: 'problem', message });
}
