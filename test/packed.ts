/**
 * The package as a user gets it. The tarball is packed once for a state of the sources, from a copy of them in which nothing
 * is built yet, and kept in a temporary folder. A project gets it unpacked, with links to the runtime dependencies of this
 * clone: what the package does not declare cannot be found from there. (package.slow.test.ts lets npm install it.)
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const sources = [
  'src',
  'bin',
  'scripts',
  'dashboard',
  'docs',
  'package.json',
  'package-lock.json',
  '.npmrc',
  'README.md',
  'LICENSE',
];
const configs = ['tsconfig.json', 'tsconfig.build.json'];
const isNeeded = (path: string): boolean => !path.endsWith('.test.ts');

export type Ran = { readonly code: number; readonly out: string; readonly err: string };

/** Runs a program to its end. */
export function ran(
  file: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env?: NodeJS.ProcessEnv },
): Promise<Ran> {
  return new Promise((resolve) => {
    execFile(file, args, { ...options, maxBuffer: 64 * 1024 * 1024 }, (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), out, err }),
    );
  });
}

async function must(file: string, args: readonly string[], cwd: string): Promise<string> {
  const { code, out, err } = await ran(file, args, { cwd });
  if (code !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${code}:\n${out}${err}`);
  return out;
}

const filesIn = (path: string): string[] =>
  statSync(join(root, path)).isDirectory()
    ? readdirSync(join(root, path)).flatMap((name) => filesIn(join(path, name)))
    : [path];

/** Path of the tarball of the present sources. */
export async function packedTarball(): Promise<string> {
  const files = [...sources, ...configs].flatMap(filesIn).filter(isNeeded).sort();
  const hash = createHash('sha256');
  for (const file of files) hash.update(`${file}\n`).update(readFileSync(join(root, file)));
  const kept = join(tmpdir(), 'pawl-packed', hash.digest('hex').slice(0, 32));
  if (!existsSync(kept)) {
    const staging = mkdtempSync(join(tmpdir(), 'pawl-pack-'));
    try {
      for (const file of files) cpSync(join(root, file), join(staging, 'clone', file));
      symlinkSync(join(root, 'node_modules'), join(staging, 'clone', 'node_modules'));
      mkdirSync(join(staging, 'packed'));
      await must('npm', ['pack', '--pack-destination', join(staging, 'packed')], join(staging, 'clone'));
      mkdirSync(dirname(kept), { recursive: true });
      try {
        renameSync(join(staging, 'packed'), kept);
      } catch (error) {
        if (!existsSync(kept)) throw error; // another test was quicker
      }
    } finally {
      rmSync(staging, { recursive: true });
    }
  }
  return join(kept, readdirSync(kept)[0]!);
}

export type Served = {
  readonly url: string;
  /** A client key, shown by the first start only. */
  readonly key: string;
  readonly adminToken: string;
  readonly process: ChildProcess;
  output(): string;
  stop(): Promise<void>;
};

export type Project = {
  readonly folder: string;
  /** Runs `pawl …` in it. */
  pawl(args: readonly string[], env?: Record<string, string>): Promise<Ran>;
  /** Starts `pawl serve` on a free port and waits until it is up. */
  serve(args?: readonly string[], env?: Record<string, string>): Promise<Served>;
  /** Stops what still serves, and removes the folder. */
  remove(): Promise<void>;
};

/** An empty folder but for the installed package. */
export async function packedProject(
  install: (tarball: string, folder: string) => Promise<void> = unpack,
): Promise<Project> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'pawl-project-')));
  await install(await packedTarball(), folder);
  const bin = join(folder, 'node_modules', '.bin', 'pawl');
  const inherited = { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: process.env.TMPDIR, TZ: 'UTC' };
  const started: Served[] = [];
  return {
    folder,
    pawl: (args, env) => ran(bin, args, { cwd: folder, env: { ...inherited, ...env } }),
    async serve(args = [], env = {}) {
      const child = spawn(bin, ['serve', ...args], {
        cwd: folder,
        env: { ...inherited, PAWL_PORT: '0', ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const served = await whenUp(child);
      started.push(served);
      return served;
    },
    async remove() {
      await Promise.all(started.map((served) => served.stop()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function unpack(tarball: string, folder: string): Promise<void> {
  const packages = join(folder, 'node_modules');
  const own = join(packages, 'pawl');
  mkdirSync(own, { recursive: true });
  await must('tar', ['-xzf', tarball, '--strip-components=1', '-C', own], folder);
  for (const name of Object.keys(manifestIn(own).dependencies)) {
    mkdirSync(dirname(join(packages, name)), { recursive: true });
    symlinkSync(realpathSync(join(root, 'node_modules', name)), join(packages, name));
  }
  mkdirSync(join(packages, '.bin'));
  symlinkSync(join('..', 'pawl', manifestIn(own).bin.pawl), join(packages, '.bin', 'pawl'));
}

export const manifestIn = (
  folder: string,
): { readonly dependencies: Readonly<Record<string, string>>; readonly bin: { readonly pawl: string } } =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

/** As a user does it. Install scripts are not needed, and one of them would download from outside the registry. */
export async function npmInstall(tarball: string, folder: string): Promise<void> {
  await must('npm', ['install', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', tarball], folder);
}

async function whenUp(child: ChildProcess): Promise<Served> {
  let text = '';
  const exited = once(child, 'exit');
  const url = await new Promise<string>((resolve, reject) => {
    const onText = (chunk: string) => {
      text += chunk;
      const found = /gateway +(http:\S+)\/v1/.exec(text)?.[1];
      if (found && /(upstream|engine) .*\n/.test(text)) resolve(found);
    };
    child.stdout!.setEncoding('utf8').on('data', onText);
    child.stderr!.setEncoding('utf8').on('data', onText);
    exited.then(([code, signal]) => reject(new Error(`pawl serve ended with ${code ?? signal}:\n${text}`)), reject);
  });
  return {
    url,
    key: /client key +(\S+)/.exec(text)?.[1] ?? '',
    adminToken: /admin token +(\S+)/.exec(text)?.[1] ?? '',
    process: child,
    output: () => text,
    async stop() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
      await exited;
    },
  };
}
