/**
 * SkyRL's Tinker server as a process, for tests that ask for the real thing: JAX on the processor, one process or workers on Ray, no account.
 * It is installed from PyPI into a virtual environment of its own, once: 7 GB and several minutes (python.ts says where, and what it needs; with
 * Python 3.11 its pydantic models fail).
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { venv } from './python.ts';
import { answering, freePort } from './server-process.ts';

const release = '0.4.0';
const python = venv(`skyrl-${release}`);

export type SkyRL = {
  readonly url: string;
  /** The name under which it holds its model: the folder it was started with. */
  readonly baseModel: string;
  /** The end of what it printed. */
  log(): string;
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Again on the same database and checkpoints, as an operator would. */
  restart(): Promise<SkyRL>;
};

/** A backend whose model is spread over this many workers that Ray starts. */
export const onRay = (workers: number) => ({
  ...{ max_lora_adapters: 4, max_lora_rank: 16, use_ray: true, num_processes: workers },
  fully_sharded_data_parallel_size: workers,
  ray_pg_bundles: Array.from({ length: workers }, () => ({ CPU: 1 })),
  ray_actor_options: { num_cpus: 1 },
});

/** `folder` is for its database and checkpoints. Ray's sockets lie there too, so its path must be short. */
export async function startSkyRL(
  options: { readonly model: string; readonly folder: string; readonly backend?: object },
  port?: number,
): Promise<SkyRL> {
  await python.once('skyrl', (pip) => pip(`skyrl[tinker,jax,ray]==${release}`, 'uv'));
  const { model, folder, backend = { max_lora_adapters: 8, max_lora_rank: 16 } } = options;
  const at = port ?? (await freePort());
  mkdirSync(folder, { recursive: true });
  const log = join(folder, 'skyrl.log');
  const child = spawn(
    python.bin('uv'),
    [
      ...['run', '--active', '--no-project', '--offline', '-m', 'skyrl.tinker.api'],
      ...['--base-model', model, '--backend', 'jax', '--backend-config', JSON.stringify(backend)],
      ...['--checkpoints-base', join(folder, 'checkpoints'), '--host', '127.0.0.1', '--port', String(at)],
    ],
    {
      cwd: folder,
      detached: true, // a group of its own: it starts its engine as a child
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...python.env,
        JAX_PLATFORMS: 'cpu',
        RAY_ENABLE_UV_RUN_RUNTIME_ENV: '0',
        RAY_TMPDIR: folder,
        RAY_DISABLE_IMPORT_WARNING: '1',
        RAY_USAGE_STATS_ENABLED: '0',
        SKYRL_DATABASE_URL: `sqlite:///${join(folder, 'tinker.db')}`,
      },
    },
  );
  const file = createWriteStream(log, { flags: 'a' });
  for (const stream of [child.stdout, child.stderr]) stream.pipe(file, { end: false });
  const url = `http://127.0.0.1:${at}`;
  const tail = () => readFileSync(log, 'utf8').slice(-4000);
  await answering(child, `${url}/api/v1/healthz`, { name: 'SkyRL’s server', log: tail });
  const kill = async (signal: NodeJS.Signals = 'SIGTERM') => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    process.kill(-child.pid!, signal);
    await gone;
    killStrays(folder);
  };
  return {
    url,
    baseModel: model,
    log: tail,
    kill,
    async restart() {
      await kill();
      return startSkyRL(options, at);
    },
  };
}

/** Ray's own processes are in groups of their own; all of them name their folder. */
function killStrays(folder: string): void {
  if (process.platform !== 'linux') return;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`${folder}/`)) process.kill(Number(pid), 'SIGKILL');
    } catch {
      // it ended meanwhile
    }
  }
}
