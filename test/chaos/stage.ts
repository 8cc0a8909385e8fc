/**
 * Everything a chaos run consists of, as real processes: gateway, upstream, engine, database, and the disks under data and
 * logs. Faults get a stage and do their worst; `close` takes all of it down, whatever state it is in.
 *
 * With `embedded` the gateway runs its own Postgres, and its home is a small tmpfs. With `external` the home lies on the
 * machine's disk and the database is one the harness runs, reached through a proxy that can go silent.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { random } from '../../src/simulate/random.ts';
import { startEmbedded } from '../../src/store/embedded.ts';
import { processStart } from '../../src/store/lock.ts';
import { type HeldDatabase, holdDatabase, until } from '../pawl.ts';
import { freePort } from '../server-process.ts';
import { type SilentProxy, startProxy } from '../silent-proxy.ts';
import { type Disk, mountDisk } from './disk.ts';
import { type ChaosEngine, makeEngine } from './engine.ts';
import { type ChaosGateway, startGateway } from './gateway.ts';
import type { Ledger } from './ledger.ts';
import { type Load, startLoad } from './load.ts';

export type DatabaseKind = 'embedded' | 'external';

export type Stage = {
  readonly kind: DatabaseKind;
  readonly ledger: Ledger;
  readonly gateway: ChaosGateway;
  readonly load: Load;
  readonly engine: ChaosEngine;
  readonly upstream: { silence(): void; resume(): void; cut(): void };
  readonly database: {
    /** Between gateway and database; null where the database is embedded. */
    readonly proxy: SilentProxy | null;
    readonly postmaster: number;
    hold(): HeldDatabase;
    /** The server's processes behind the gateway's connections, and their end. External only. */
    backends(): Promise<number[]>;
    end(backends: readonly number[]): Promise<void>;
  };
  readonly journal: string;
  /** Null where no file system may be mounted. */
  readonly dataDisk: Disk | null;
  readonly logDisk: Disk | null;
  readonly log: string;
  setClock(offsetMs: number): void;
  /** Where the rows are, once the gateway has ended. */
  readonly evidence: { readonly home: string; readonly databaseUrl?: string };
  close(): Promise<void>;
};

export type StageOptions = {
  readonly kind: DatabaseKind;
  readonly ledger: Ledger;
  readonly seed: number;
  readonly rate: number;
};

const MB = 1024 * 1024;
/** Room for Postgres and its write-ahead log over a quarter of an hour. */
const dataBytes = 3072 * MB;
const logBytes = 8 * MB;

export async function openStage({ kind, ledger, seed, rate }: StageOptions): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-chaos-'));
  const closers: (() => Promise<void> | void)[] = [() => rmSync(folder, { recursive: true, force: true })];
  const close = async () => {
    for (const step of closers.splice(0).reverse()) await step();
  };
  try {
    const home = join(folder, 'home');
    const dataDisk = kind === 'embedded' ? mountDisk(home, dataBytes) : null;
    if (dataDisk !== null) closers.push(() => dataDisk.remove());
    const logs = join(folder, 'logs');
    mkdirSync(logs);
    const logDisk = mountDisk(logs, logBytes);
    if (logDisk !== null) closers.push(() => logDisk.remove());

    const upstream = await forkUpstream();
    closers.push(() => upstream.close());
    const engine = makeEngine(await freePort(), 'tiny');
    closers.push(() => engine.kill());
    await engine.start();

    const serverHome = kind === 'embedded' ? home : join(folder, 'server');
    const server = kind === 'external' ? await startEmbedded({ home: serverHome }) : null;
    if (server !== null) closers.push(() => server.stop());
    const proxy = server === null ? null : await startProxy({ port: Number(new URL(server.url).port) });
    if (proxy !== null) closers.push(() => proxy.close());

    const config = join(folder, 'pawl.config.ts');
    writeFileSync(config, `export default ${JSON.stringify(settings(upstream.port, engine.url))};\n`);
    const clock = join(folder, 'clock');
    const log = join(logs, 'gateway.log');
    const gateway = await startGateway({
      ledger,
      home,
      config,
      databaseUrl: server === null || proxy === null ? null : at(server.url, proxy.port),
      port: await freePort(),
      log,
      clock,
    });
    if (kind === 'embedded') closers.push(() => stopLeftServer(home));
    closers.push(() => gateway.close());
    if (gateway.key === '') throw new Error('The first start of the gateway printed no client key.');
    const prefix = `chaos-${kind.slice(0, 2)}`;
    const load = startLoad({
      ledger,
      origin: gateway.origin,
      key: gateway.key,
      rate,
      random: random(seed, 'load', kind),
      prefix,
    });
    closers.push(() => load.close());
    return {
      kind,
      ledger,
      gateway,
      load,
      engine,
      upstream,
      database: {
        proxy,
        get postmaster() {
          return postmasterOf(serverHome)!;
        },
        hold: () => holdDatabase(serverHome),
        backends: () => backendsOf(server?.url ?? ''),
        end: (backends) => endBackends(server?.url ?? '', backends),
      },
      journal: join(home, 'journal'),
      dataDisk,
      logDisk,
      log,
      setClock: (offsetMs) => writeFileSync(clock, String(offsetMs)),
      evidence: { home, ...(server === null ? {} : { databaseUrl: server.url }) },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

const settings = (upstreamPort: number, engineUrl: string) => ({
  agents: [{ name: 'chaos' }],
  upstreams: {
    stand: { baseUrl: `http://127.0.0.1:${upstreamPort}/v1`, silenceSeconds: 10 },
    small: { baseUrl: engineUrl, models: ['tiny'], silenceSeconds: 10 },
  },
});

async function forkUpstream() {
  const path = fileURLToPath(new URL('./upstream-process.ts', import.meta.url));
  const child: ChildProcess = fork(path, [], { execArgv: ['--import', 'tsx'], stdio: 'inherit' });
  const [port] = (await once(child, 'message')) as [number];
  return {
    port,
    silence: () => void child.send('silence'),
    resume: () => void child.send('resume'),
    cut: () => void child.send('cut'),
    async close() {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}

async function ask(url: string, sql: string, values: unknown[] = []): Promise<{ pid: number }[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query<{ pid: number }>(sql, values)).rows;
  } finally {
    await client.end();
  }
}

const backendsOf = async (url: string): Promise<number[]> =>
  (
    await ask(url, `select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`)
  ).map(({ pid }) => pid);

const endBackends = async (url: string, backends: readonly number[]): Promise<void> => {
  await ask(url, 'select pg_terminate_backend(pid) from pg_stat_activity where pid = any($1)', [backends]);
};

function at(url: string, port: number): string {
  const address = new URL(url);
  address.port = String(port);
  return address.href;
}

function postmasterOf(home: string): number | null {
  try {
    return Number(readFileSync(join(home, 'postgres', 'data', 'postmaster.pid'), 'utf8').split('\n')[0]);
  } catch {
    return null;
  }
}

/** The database of a gateway that was killed lives on. */
async function stopLeftServer(home: string): Promise<void> {
  const pid = postmasterOf(home);
  if (pid === null || processStart(pid) === null) return;
  process.kill(pid, 'SIGCONT');
  process.kill(pid, 'SIGQUIT');
  await until(
    () => processStart(pid),
    (start) => start === null,
  );
}
