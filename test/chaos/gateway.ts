/**
 * The gateway of a chaos run, over all its lives: started, killed, told to end, and asked for its counters ten times a second.
 * A start is tried until it works, in the background, because a gateway may be killed while its database is away. What it
 * does that it should not (ending by itself, not starting, not ending) becomes a finding in the ledger.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Pool } from 'undici';
import { faultsNow, type Ledger, type Life, now } from './ledger.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const preload = new URL('./preload.js', import.meta.url).href;
const scrapeMs = 100;
/** A start, an end and an answer that take longer than this are taken for stuck. */
const startLimitMs = 60_000;
const endLimitMs = 60_000;
const answerLimitMs = 30_000;
/** Before any fault a gateway starts, or the run cannot begin. */
const firstStarts = 3;
/** A database further behind than this does not take what comes in. */
const lateMs = 2_000;
/** Time between two looks at the recorder's queue, and after how long it is twice, three times that: some machines are slow. */
const lookMs = 50;
const slowerMs = 2_000;

type Health = {
  readonly recording: {
    readonly queueDepth: number;
    readonly journalled: number;
    readonly restarts: number;
    readonly sinkLagMs: number;
    readonly sinkUp: boolean;
    readonly dropped: Readonly<Record<string, number>>;
    readonly refused: number;
    readonly corrupt: number;
  };
};

export type ChaosGateway = {
  readonly origin: string;
  readonly key: string;
  readonly adminToken: string;
  readonly pid: number | null;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** SIGTERM, after a last look at its counters. */
  end(): Promise<void>;
  /** Begins a new life in the background. */
  begin(): void;
  /** Resolves when it answers. One that never will is killed and begun again. */
  up(): Promise<void>;
  signal(name: NodeJS.Signals): void;
  /** Resolves when the recorder has nothing old in its queue; false when that does not come about. */
  journals(limitMs: number): Promise<boolean>;
  /** Ends the recorder's thread where it stands. Resolves when the next one has nothing old in its queue. */
  replaceRecorder(limitMs: number): Promise<boolean>;
  /** Resolves when the database takes what comes in; false when that does not come about. */
  writes(limitMs: number): Promise<boolean>;
  /** Resolves when everything it has is in the database; false when that does not come about. */
  drained(limitMs: number): Promise<boolean>;
  /** Ends it by all means and stops looking. */
  close(): Promise<void>;
};

export type GatewayOptions = {
  readonly ledger: Ledger;
  readonly home: string;
  readonly config: string;
  readonly databaseUrl: string | null;
  /** All of Pawl, or its gateway alone. */
  readonly command?: 'serve' | 'gateway'; // serve
  readonly port: number;
  /** Where stderr goes. */
  readonly log: string;
  /** The file from which its clock is set. */
  readonly clock: string;
};

export async function startGateway(options: GatewayOptions): Promise<ChaosGateway> {
  const { ledger, port } = options;
  const origin = `http://127.0.0.1:${port}`;
  const pool = new Pool(origin, { connections: 4, headersTimeout: 2_000, bodyTimeout: 2_000, connectTimeout: 2_000 });
  let child: ChildProcess | null = null;
  let life: Life | null = null;
  let printed = '';
  let closed = false;
  let starting: Promise<void> | null = null;
  let answered = false;
  let ended = 0; // by itself, before it had ever answered

  const find = (what: string) => ledger.findings.push({ at: now(), during: faultsNow(ledger), what });

  function launch(): ChildProcess {
    const log = openSync(options.log, 'a', 0o600);
    const started = spawn(process.execPath, ['bin/pawl.js', options.command ?? 'serve', '--config', options.config], {
      cwd: root,
      env: {
        ...process.env,
        NODE_OPTIONS: `--import ${preload}`,
        CHAOS_CLOCK: options.clock,
        PAWL_HOME: options.home,
        PAWL_PORT: String(port),
        DATABASE_URL: options.databaseUrl ?? '',
      },
      stdio: ['ignore', 'pipe', log],
    });
    closeSync(log);
    printed = '';
    started.stdout!.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
    return started;
  }

  async function health(): Promise<Health | null> {
    try {
      const answer = await pool.request({ method: 'GET', path: '/healthz' });
      const said = (await answer.body.json()) as Partial<Health>;
      return said.recording === undefined ? null : (said as Health); // without figures it is still starting
    } catch {
      return null;
    }
  }

  /** Looks at the counters of the present life. */
  async function scrape(): Promise<Health | null> {
    const of = life;
    const seen = await health();
    if (seen === null || of === null || of !== life) return null;
    const { dropped, refused, corrupt } = seen.recording;
    of.counted = Object.values(dropped).reduce((sum, n) => sum + n, refused);
    of.corrupt = corrupt;
    return seen;
  }

  const alive = () => child !== null && child.exitCode === null && child.signalCode === null;

  async function start(): Promise<void> {
    while (!closed) {
      const started = launch();
      child = started;
      const began: Life = { startedAt: now(), endedAt: null, end: 'running', counted: 0, corrupt: 0 };
      life = began;
      ledger.lives.push(began);
      started.once('exit', (code, signal) => {
        if (life === began) life = null;
        if (began.end !== 'running') return;
        began.end = 'died';
        began.endedAt = now();
        if (!closed) find(`the gateway ended by itself with ${code ?? signal}`);
      });
      while (alive() && child === started && now() - began.startedAt < startLimitMs) {
        if ((await scrape()) !== null) {
          answered = true;
          return;
        }
        await sleep(20);
      }
      if (!alive() && !answered && ++ended === firstStarts) return;
      if (closed || child !== started) return;
      if (alive()) {
        find(`the gateway did not answer within ${startLimitMs / 1000} s of its start`);
        await put('SIGKILL', 'stuck');
      }
      await sleep(300);
    }
  }

  async function put(signal: NodeJS.Signals, end: Life['end']): Promise<void> {
    const [target, of] = [child, life];
    if (target === null || of === null || !alive()) return;
    of.end = end;
    of.endedAt = now();
    const exited = once(target, 'exit');
    target.kill(signal);
    const late = signal === 'SIGKILL' ? null : setTimeout(() => stuckAtEnd(target, of), endLimitMs);
    await exited;
    if (late !== null) clearTimeout(late);
    if (signal !== 'SIGKILL') of.endedAt = now();
  }

  function stuckAtEnd(target: ChildProcess, of: Life): void {
    find(`the gateway had not ended ${endLimitMs / 1000} s after SIGTERM`);
    of.end = 'stuck';
    target.kill('SIGKILL');
  }

  const watch = (async () => {
    while (!closed) {
      await scrape();
      await sleep(scrapeMs);
    }
  })();

  /** True once the recorder has said so five times in a row; its figures are a quarter of a second old at most. */
  async function stays(limitMs: number, good: (recording: Health['recording']) => boolean): Promise<boolean> {
    for (let calm = 0, until = now() + limitMs; now() < until; await sleep(200)) {
      const seen = await scrape();
      calm = seen !== null && good(seen.recording) ? calm + 1 : 0;
      if (calm === 5) return true;
    }
    return false;
  }

  /**
   * Exchanges are journalled in the order they came in. So once what was queued at one look is done at the next, nothing is
   * older than the time between the two. A thread that ended between them has done nothing, however many it is said to have lost.
   */
  async function journals(limitMs: number): Promise<boolean> {
    const done = ({ journalled, dropped }: Health['recording']) =>
      journalled + Object.values(dropped).reduce((sum, n) => sum + n, 0);
    const began = now();
    for (let before = (await scrape())?.recording; now() < began + limitMs; ) {
      await sleep(lookMs * (1 + (now() - began) / slowerMs));
      const seen = (await scrape())?.recording;
      const same = before !== undefined && seen !== undefined && seen.restarts === before.restarts;
      if (same && done(seen) >= done(before!) + before!.queueDepth) return true;
      before = seen;
    }
    return false;
  }

  async function replaceRecorder(limitMs: number): Promise<boolean> {
    const until = now() + limitMs;
    const restarts = (await scrape())?.recording.restarts ?? 0;
    gateway.signal('SIGUSR2');
    while (((await scrape())?.recording.restarts ?? restarts) === restarts) {
      if (now() > until || !alive()) return false;
      await sleep(20);
    }
    return await journals(until - now());
  }

  const gateway: ChaosGateway = {
    origin,
    key: '',
    adminToken: '',
    get pid() {
      return alive() ? (child?.pid ?? null) : null;
    },
    kill: () => put('SIGKILL', 'killed'),
    async end() {
      await scrape();
      await put('SIGTERM', 'asked');
    },
    begin() {
      if (alive()) return;
      starting ??= start().finally(() => {
        starting = null;
      });
    },
    async up() {
      for (let since = now(); !closed; ) {
        if (starting === null && !alive()) gateway.begin();
        if (starting !== null) {
          await starting;
          since = now();
        }
        if ((await health()) !== null) return;
        if (ended >= firstStarts)
          throw new Error(`No gateway could be started: ${readFileSync(options.log, 'utf8').slice(-1000)}`);
        if (alive() && now() - since > answerLimitMs) {
          find(`the gateway did not answer for ${answerLimitMs / 1000} s`);
          await put('SIGKILL', 'stuck');
          since = now();
        }
        await sleep(50);
      }
    },
    signal(name) {
      if (alive()) child?.kill(name);
    },
    journals,
    replaceRecorder,
    writes: (limitMs) => stays(limitMs, ({ sinkUp, sinkLagMs }) => sinkUp && sinkLagMs < lateMs),
    drained: (limitMs) =>
      stays(limitMs, ({ sinkUp, queueDepth, sinkLagMs }) => sinkUp && queueDepth === 0 && sinkLagMs === 0),
    async close() {
      if (alive()) {
        child?.kill('SIGCONT');
        await put('SIGKILL', 'killed');
      }
      closed = true;
      await starting;
      await watch;
      await pool.destroy();
    },
  };

  gateway.begin();
  await gateway.up();
  const isSaid = () =>
    (/client key +\S/.test(printed) && /admin token +\S/.test(printed)) || /upstream +\S.*\n/.test(printed);
  for (let waited = 0; !isSaid() && waited < 5_000; waited += 20) await sleep(20);
  return Object.assign(gateway, {
    key: /client key +(\S+)/.exec(printed)?.[1] ?? '',
    adminToken: /admin token +(\S+)/.exec(printed)?.[1] ?? '',
  });
}
