/**
 * `npm run build`, and `npm pack` by itself: makes dist/ out of src/, which is all of it that a package holds: JavaScript in a few files
 * instead of hundreds, its types, the SQL that is read at run time, the documentation (docs-site.js) and the dashboard (dashboard.js).
 * `--quick` leaves out types and checking, and a dashboard that is newer than its source, in a second: for tests and benches,
 * which run what users run.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { bundledPackages, packageOf } from './bundled.js';
import { buildDashboard, isDashboardBuilt } from './dashboard.js';
import { buildDocs } from './docs-site.js';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
/** @typedef {import('rolldown').RolldownOutput['output']} Output */

const isQuick = process.argv.includes('--quick');
const keeps = isQuick && isDashboardBuilt();

/** Everything that can be reached from the commands, the entries of package.json's `exports` and the threads (the recorder, users' scorers). */
async function bundle() {
  const building = await rolldown({
    cwd: root,
    input: {
      main: 'src/main.ts',
      index: 'src/index.ts',
      'index-engine': 'src/index-engine.ts',
      'recorder-worker': 'src/collect/recorder-worker.ts',
      'isolate-worker': 'src/score/isolate-worker.ts',
    },
    platform: 'node',
    tsconfig: false, // its paths are for tests: what a user's file imports as 'pawl' stays so
    external: (name) => !/^[./]/.test(name) && !bundledPackages.includes(packageOf(name)),
  });
  const { output } = await building.write({
    dir: join(root, 'dist'),
    format: 'esm',
    // All in one folder: src/root.ts counts on it.
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
  });
  await building.close();
  return output;
}

/** Errors are called by the names of their classes, which may have changed only where a package has one of the same name. @param {Output} output */
function checkErrors(output) {
  const own = [...readFileSync(join(root, 'src/errors.ts'), 'utf8').matchAll(/^export class (\w+)/gm)];
  const code = output.map((chunk) => (chunk.type === 'chunk' ? chunk.code : '')).join('\n');
  for (const [, name] of own)
    if (!code.includes(`var ${name} = class extends `))
      throw new Error(`Errors called ${name} have another name in dist/.`);
}

/** Of each package that is in those files, as its licence asks. @param {Output} output */
function noticesOf(output) {
  const inside = output.flatMap((chunk) => (chunk.type === 'chunk' ? chunk.moduleIds : []));
  const folders = inside.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []);
  return [...new Set(folders)].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const texts = readdirSync(folder).filter((file) => /^(licen[cs]e|notice)/i.test(file));
    return [`${name} ${version} (${license})`, ...texts.map((file) => readFileSync(join(folder, file), 'utf8').trim())];
  });
}

function declareTypes() {
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');
  const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status !== 0) process.exit(status ?? 1);
}

mkdirSync(join(root, 'dist'), { recursive: true });
for (const name of readdirSync(join(root, 'dist')))
  if (!(keeps && name === 'dashboard')) rmSync(join(root, 'dist', name), { recursive: true, force: true });
if (!isQuick) declareTypes();
const built = await bundle();
checkErrors(built);
const notices = noticesOf(built);
writeFileSync(join(root, 'dist/THIRD-PARTY.txt'), `${notices.map((one) => one.join('\n\n')).join('\n\n---\n\n')}\n`);
cpSync(join(root, 'src/store/migrations'), join(root, 'dist/migrations'), { recursive: true });
buildDocs();
if (!keeps) await buildDashboard();
