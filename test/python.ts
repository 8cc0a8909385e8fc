/**
 * Virtual environments for tests that ask for the real thing from PyPI, made once below ~/.cache/pawl (`PAWL_VENVS` names another folder).
 * What is put into one is done when its mark lies there, so that an installation that broke off is done again. Needs Python 3.12
 * (`PAWL_PYTHON`, else python3.12).
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const python = process.env.PAWL_PYTHON ?? 'python3.12';

/** Why nothing of it can run here; null: it can. */
export const pythonMissing = ((): string | null => {
  try {
    const version = execFileSync(python, ['--version'], { encoding: 'utf8', stdio: 'pipe' }).trim();
    return version.startsWith('Python 3.12') ? null : `${python} is ${version}; it must be Python 3.12 (PAWL_PYTHON)`;
  } catch {
    return `there is no ${python}; Python 3.12 is needed (PAWL_PYTHON)`;
  }
})();

/** Behind the name of a test that is left out: why. */
export const leftOut = pythonMissing === null ? '' : ` (left out: ${pythonMissing})`;

export type Venv = {
  readonly folder: string;
  bin(name: string): string;
  /** Does `install` if `mark` does not lie there yet. */
  once(mark: string, install: (pip: (...args: string[]) => Promise<void>) => Promise<void>): Promise<void>;
  /** What its processes are started with: its programs first, nothing from the network, and one thread, since cores are few. */
  readonly env: NodeJS.ProcessEnv;
};

/** Of one name in one folder: what shares a name shares its packages. */
export function venv(name: string): Venv {
  const folder = join(process.env.PAWL_VENVS ?? join(homedir(), '.cache', 'pawl'), name);
  const bin = (program: string) => join(folder, 'bin', program);
  return {
    folder,
    bin,
    async once(mark, install) {
      const done = join(folder, `installed-${mark}`);
      if (existsSync(done)) return;
      mkdirSync(folder, { recursive: true });
      if (!existsSync(bin('pip'))) await run(python, '-m', 'venv', folder);
      await install((...args) => run(bin('pip'), 'install', '--quiet', ...args));
      writeFileSync(done, '');
    },
    env: {
      ...process.env,
      VIRTUAL_ENV: folder,
      PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
      HF_HUB_OFFLINE: '1',
      OMP_NUM_THREADS: '1',
    },
  };
}

async function run(command: string, ...args: string[]): Promise<void> {
  const [code] = (await once(spawn(command, args, { stdio: 'inherit' }), 'exit')) as [number | null];
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}.`);
}

/** torch and what stands on it: vLLM and TRL agree on one, and it is 5 GB. */
export const torchVenv = venv('torch-2.13.0');
export const withTorch = () => torchVenv.once('torch', (pip) => pip('torch==2.13.0', 'torchvision', 'torchaudio'));
