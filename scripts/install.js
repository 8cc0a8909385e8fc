/**
 * Runs before start, test, check, dev and bench: installs the packages if they are missing or differ from the lockfile.
 * Install scripts of dependencies are not run. They would download from outside the registry (onnxruntime-node's CUDA
 * libraries) or do what src/store/embedded.ts does itself (Postgres' symbolic links). `npm ci` by hand works as well:
 * package.json's allowScripts says the same to npm.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`Pawl needs Node 20.19 or newer; this is ${process.versions.node}.`);
  process.exit(1);
}

/** @param {string} path @returns {Record<string, { version?: string, optional?: boolean, peer?: boolean }>} */
const packagesIn = (path) => (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).packages : {});

const wanted = packagesIn(join(root, 'package-lock.json'));
const present = packagesIn(join(root, 'node_modules', '.package-lock.json'));
const missing = Object.entries(wanted).filter(
  ([path, { version, optional }]) => path !== '' && present[path]?.version !== version && !(optional && !present[path]),
);

if (missing.length > 0) {
  console.error(`Installing ${Object.keys(wanted).length - 1} packages from the lockfile (once) …`);
  const npm = process.env.npm_execpath;
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  /** @type {import("node:child_process").SpawnSyncOptions} */
  const options = { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] };
  const result = npm
    ? spawnSync(process.execPath, [npm, ...args], options)
    : spawnSync('npm', args, { ...options, shell: process.platform === 'win32' });
  if (result.status !== 0) {
    console.error(
      'npm ci failed (see above). Pawl needs only the npm registry; check `npm ping`, then run this again.',
    );
    process.exit(1);
  }
}
