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
    keepNames: true, // errors are called by the names of their classes
  });
  await building.close();
  return output;
}

/** Of each package that is in those files, as its licence asks. @param {import("rolldown").RolldownOutput["output"]} output */
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
const notices = noticesOf(await bundle());
writeFileSync(join(root, 'dist/THIRD-PARTY.txt'), `${notices.map((one) => one.join('\n\n')).join('\n\n---\n\n')}\n`);
cpSync(join(root, 'src/store/migrations'), join(root, 'dist/migrations'), { recursive: true });
buildDocs();
if (!keeps) await buildDashboard();
