/**
 * An embedded server for tests, with a migrated database to copy from. As vitest's global set-up it gives one to a whole run;
 * a run of named files is left to start its own where they need one, because most need none.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { startEmbedded } from './embedded.ts';
import { connectStore } from './postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    database: { readonly url: string; readonly template: string } | null;
  }
}

export const at = (url: string, database: string): string => {
  const parsed = new URL(url);
  parsed.pathname = `/${database}`;
  return parsed.href;
};

/** A test run that is killed must not leave a server behind: the shell's `read` returns when this process is gone. */
const watch = (pid: number, home: string): ChildProcess => {
  const script = 'read _; kill -QUIT "$1"; sleep 2; rm -rf "$2"';
  const guard = spawn('sh', ['-c', script, 'sh', String(pid), home], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  guard.on('error', () => {});
  guard.unref();
  return guard;
};

export type TestServer = {
  /** Of any database on the server; `at` names the one that is meant. */
  readonly url: string;
  /** Migrated, to be copied. */
  readonly template: string;
  stop(): Promise<void>;
};

export const startTestServer = async (): Promise<TestServer> => {
  const home = mkdtempSync(join(tmpdir(), 'pawl-test-'));
  const server = await startEmbedded({ home, volatile: true }).catch((error: unknown) => {
    rmSync(home, { recursive: true, force: true });
    throw error;
  });
  const guard = watch(server.pid, home);
  const stop = async () => {
    await server.stop();
    guard.kill('SIGKILL');
    rmSync(home, { recursive: true, force: true });
  };
  const template = 'pawl';
  await (await connectStore(at(server.url, template))).close(); // migrates
  return { url: server.url, template, stop };
};

/** No file is named: everything runs. */
export const isWholeRun = (): boolean => process.argv.slice(2).every((word) => !/\.ts$|\//.test(word));

export default async function setUp(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (!isWholeRun() || process.env.PAWL_TEST_DATABASE) {
    project.provide('database', null);
    return;
  }
  const { url, template, stop } = await startTestServer();
  project.provide('database', { url, template });
  return stop;
}
