/**
 * `npm run build`, and `npm pack` by itself: makes dist/ out of src/, which is all of it that a package holds. Plain
 * JavaScript with its types, one file for each source file that can be reached (tsconfig.build.json says from where), and
 * the SQL that is read at run time, and the documentation (docs-site.js). `--quick` leaves out types and checking, in a second: for tests and benches, which run
 * what users run.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildDocs } from './docs-site.js';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');

rmSync(join(root, 'dist'), { recursive: true, force: true });
const quick = process.argv.includes('--quick') ? ['--declaration', 'false', '--noCheck'] : [];
const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', ...quick], {
  cwd: root,
  stdio: ['ignore', 'inherit', 'inherit'],
});
if (status !== 0) process.exit(status ?? 1);
cpSync(join(root, 'src/store/migrations'), join(root, 'dist/store/migrations'), { recursive: true });
buildDocs();
