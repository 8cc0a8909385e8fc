/**
 * A real S3 server for tests that ask for one: Versity's gateway over a folder of this machine, where it is installed
 * (`go install github.com/versity/versitygw/cmd/versitygw@v1.8.0`).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const program = ((): string | null => {
  const folders = [...(process.env.PATH ?? '').split(delimiter), join(homedir(), 'go', 'bin')];
  for (const folder of folders) {
    const path = join(folder, 'versitygw');
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {}
  }
  return null;
})();

/** Why it cannot run here; null: it can. */
export const s3Missing =
  program === null ? 'there is no versitygw: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0' : null;

export type S3Server = {
  readonly endpoint: string;
  readonly bucket: string;
  /** What the AWS SDK finds its credentials in. */
  readonly env: { readonly AWS_ACCESS_KEY_ID: string; readonly AWS_SECRET_ACCESS_KEY: string };
  stop(): Promise<void>;
};

export async function startS3(folder: string): Promise<S3Server> {
  const bucket = 'pawl-test';
  const [access, secret] = ['pawl-test-access', 'pawl-test-secret'];
  mkdirSync(join(folder, 'objects', bucket), { recursive: true });
  mkdirSync(join(folder, 'sidecar'), { recursive: true });
  const address = `127.0.0.1:${await freePort()}`;
  const child = spawn(
    program!,
    [
      '--access',
      access,
      '--secret',
      secret,
      '--port',
      address,
      '--quiet',
      'posix',
      '--sidecar',
      join(folder, 'sidecar'),
      join(folder, 'objects'),
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const endpoint = `http://${address}`;
  await answering(child, endpoint);
  return {
    endpoint,
    bucket,
    env: { AWS_ACCESS_KEY_ID: access, AWS_SECRET_ACCESS_KEY: secret },
    stop: () =>
      new Promise((resolve) => {
        if (child.exitCode !== null) return resolve();
        child.once('exit', () => resolve());
        child.kill('SIGKILL');
      }),
  };
}

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });

async function answering(child: ChildProcess, endpoint: string): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`The S3 server ended with ${child.exitCode}.`);
    const answered = await fetch(endpoint).then(
      () => true,
      () => false,
    );
    if (answered) return;
    await sleep(50);
  }
}
