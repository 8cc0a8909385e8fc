/**
 * `npm run build`, and `npm pack` by itself: makes dist/ out of src/, which is all of it that a package holds. Plain
 * JavaScript with its types, one file for each source file that can be reached (tsconfig.build.json says from where), and
 * the SQL that is read at run time, the documentation (docs-site.js) and the dashboard (dashboard.js). `--quick` leaves out types and
 * checking, and a dashboard that is newer than its source, in a second: for tests and benches, which run what users run.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildDashboard, isDashboardBuilt } from './dashboard.js';
import { buildDocs } from './docs-site.js';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');

const isQuick = process.argv.includes('--quick');
const keeps = isQuick && isDashboardBuilt();
mkdirSync(join(root, 'dist'), { recursive: true });
for (const name of readdirSync(join(root, 'dist')))
  if (!(keeps && name === 'dashboard')) rmSync(join(root, 'dist', name), { recursive: true, force: true });
const { status } = spawnSync(
  process.execPath,
  [tsc, '-p', 'tsconfig.build.json', ...(isQuick ? ['--declaration', 'false', '--noCheck'] : [])],
  {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  },
);
if (status !== 0) process.exit(status ?? 1);
cpSync(join(root, 'src/store/migrations'), join(root, 'dist/store/migrations'), { recursive: true });
buildDocs();
if (!keeps) await buildDashboard();
