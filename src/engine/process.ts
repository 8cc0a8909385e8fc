/**
 * The engine as a process of its own: native code can die, the gateway cannot. `runEngine` is
 * the child's side: engine, HTTP door and socket. `startEngine` is the parent's: it starts `pawl engine`, waits until it
 * is ready, starts it again when it dies, and has it load what it had loaded.
 *
 *   starting ──ready──▶ running ──exit──▶ waiting (0.1 s, doubled up to 10 s) ──▶ starting …   any ──close()──▶ stopped
 *
 * The two talk over Node's IPC channel: the child says what it has loaded, and ends when the channel closes, so it never
 * outlives its parent. A first start that fails is the caller's error; later ones are tried again for ever.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { EngineError } from '../errors.ts';
import { root } from '../root.ts';
import type { Engine } from './engine.ts';
import { serve } from './serve.ts';
import { createServedModels, type Loaded, type ServedModels } from './served.ts';
import { listenEngine, newSocketPath, type RemoteEngine, remoteEngine } from './socket.ts';

/** What the child tells its parent. */
type Notice =
  | { readonly kind: 'ready'; readonly url: string; readonly port: number; readonly socket: string }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'models'; readonly loaded: readonly Loaded[] };

// ---- The child -----------------------------------------------------------------------------------------------------

export type RunOptions = {
  readonly engine: Engine;
  readonly load: readonly Loaded[];
  readonly host: string;
  readonly port: number;
  readonly socket?: string;
  /** After a restart: a checkpoint that is gone must not keep the others from serving. */
  readonly lenient?: boolean;
  readonly log: (line: string) => void;
};

export type Running = {
  readonly url: string;
  readonly port: number;
  readonly socket: string;
  readonly models: ServedModels;
  close(): Promise<void>;
};

export async function runEngine(options: RunOptions): Promise<Running> {
  const { engine, log } = options;
  const onError = (error: unknown) => log(error instanceof Error ? (error.stack ?? error.message) : String(error));
  const models = createServedModels(engine, { onChange: (loaded) => notify({ kind: 'models', loaded }) });
  for (const { name, folder, ...rest } of options.load) {
    try {
      await models.load(name, folder, rest);
    } catch (error) {
      if (!options.lenient) throw error;
      log(`${name} could not be loaded again from ${folder}: ${(error as Error).message}`);
    }
  }
  const socket = await listenEngine({ engine, models, path: options.socket ?? newSocketPath(), onError });
  let http: Awaited<ReturnType<typeof serve>>;
  try {
    http = await serve({ engine, models, host: options.host, port: options.port, onError });
  } catch (error) {
    await socket.close();
    throw error;
  }
  return {
    url: http.url,
    port: http.port,
    socket: socket.path,
    models,
    async close() {
      await http.close();
      await socket.close();
      await engine.close();
    },
  };
}

/** Whether startEngine is at the other end. A channel alone does not say so: other programs open them too. */
export const hasParent = (): boolean => process.connected === true && process.env.PAWL_ENGINE_LOAD !== undefined;

export function notify(notice: Notice): void {
  if (hasParent()) process.send?.(notice);
}

// ---- The parent ----------------------------------------------------------------------------------------------------

export type StartOptions = {
  readonly models?: readonly Loaded[];
  readonly host?: string; // 127.0.0.1
  /** 0: any free one, which it keeps over restarts. */
  readonly port?: number;
  readonly threads?: number;
  readonly memory?: number; // bytes
  /** What is run, for tests; default is this package's own `pawl engine`. */
  readonly command?: readonly string[];
  readonly log?: (line: string) => void;
};

export type EngineProcess = {
  /** Of the OpenAI-compatible server; the same over restarts. */
  readonly url: string;
  readonly socket: string;
  /** Waits while the process is being restarted. A call that was under way when it died fails, retryable. */
  readonly engine: RemoteEngine;
  readonly pid: number | undefined;
  readonly restarts: number;
  close(): Promise<void>;
};

const settledAfter = 30_000; // a process that ran this long had not failed to start
const graceMs = 10_000;

export const restartDelay = (failures: number): number => Math.min(10_000, 100 * 2 ** Math.min(failures, 10));

export async function startEngine(options: StartOptions = {}): Promise<EngineProcess> {
  const { host = '127.0.0.1', log = () => {} } = options;
  const command = options.command ?? [fileURLToPath(new URL('bin/pawl.js', root)), 'engine'];
  const socket = newSocketPath();
  let port = options.port ?? 0;
  let loaded: readonly Loaded[] = options.models ?? [];
  let child: ChildProcess | undefined;
  let restarts = 0;
  let failures = 0;
  let closing = false;
  let retry: NodeJS.Timeout | undefined;
  let ready: Promise<void>;
  let settle: { done: () => void; fail: (error: Error) => void };
  const expectReady = () => {
    ready = new Promise((done, fail) => {
      settle = { done, fail };
    });
    ready.catch(() => {}); // whoever calls the engine hears of it
  };
  expectReady();

  const launch = (first: boolean): Promise<void> =>
    new Promise((done, fail) => {
      const args = [...command, '--host', host, '--port', String(port), '--socket', socket];
      if (options.threads !== undefined) args.push('--threads', String(options.threads));
      if (options.memory !== undefined) args.push('--memory', String(options.memory));
      const started = Date.now();
      const launched = spawn(process.execPath, args, {
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
        env: {
          ...process.env,
          PAWL_ENGINE_LOAD: JSON.stringify(loaded),
          ...(first ? {} : { PAWL_ENGINE_RESTART: '1' }),
        },
      });
      child = launched;
      for (const stream of [launched.stdout, launched.stderr]) {
        stream?.setEncoding('utf8').on('data', (text: string) => {
          for (const line of text.split('\n')) if (line.trim() !== '') log(line);
        });
      }
      let failure = 'it ended before it was ready';
      let isReady = false;
      launched.on('message', (notice: Notice) => {
        if (notice.kind === 'models') {
          if (isReady) loaded = notice.loaded; // while it loads, its list is not complete yet
        } else if (notice.kind === 'failed') failure = notice.message;
        else {
          isReady = true;
          port = notice.port;
          settle.done();
          done();
        }
      });
      launched.once('error', (error) => {
        failure = error.message;
      });
      launched.once('close', (code, signal) => {
        child = undefined;
        const how = signal ? `by ${signal}` : `with code ${code}`;
        if (first && !isReady) {
          fail(new EngineError(`The engine could not be started: ${failure}`));
          return;
        }
        if (closing) return;
        if (isReady) expectReady();
        failures = isReady && Date.now() - started > settledAfter ? 0 : failures + 1;
        const delay = restartDelay(failures - 1);
        log(`The engine ended ${how}${isReady ? '' : ` (${failure})`}; it is started again in ${delay} ms.`);
        retry = setTimeout(() => {
          restarts++;
          void launch(false);
        }, delay);
      });
    });

  await launch(true);
  const remote = remoteEngine(socket);

  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    socket,
    engine: whenReady(remote, () => ready),
    get pid() {
      return child?.pid;
    },
    get restarts() {
      return restarts;
    },
    async close() {
      closing = true;
      clearTimeout(retry);
      settle.fail(new EngineError('The engine was stopped.'));
      await remote.close();
      const running = child;
      if (running) {
        const gone = new Promise((done) => running.once('close', done));
        running.kill('SIGTERM');
        const force = setTimeout(() => running.kill('SIGKILL'), graceMs);
        await gone;
        clearTimeout(force);
      }
      if (process.platform !== 'win32') await rm(socket, { force: true }); // one that was killed left it behind
    },
  };
}

function whenReady(engine: RemoteEngine, ready: () => Promise<void>): RemoteEngine {
  const after =
    <A extends unknown[], T>(call: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      await ready();
      return call(...args);
    };
  return {
    traits: engine.traits,
    load: after(engine.load),
    replace: after(engine.replace),
    models: after(engine.models),
    forward: after(engine.forward),
    forwardBackward: after(engine.forwardBackward),
    optimStep: after(engine.optimStep),
    sample: after(engine.sample),
    save: after(engine.save),
    snapshot: after(engine.snapshot),
    unload: after(engine.unload),
    close: engine.close,
  };
}
