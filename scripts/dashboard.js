/**
 * The dashboard as static files: dashboard/ → dist/dashboard/, with names that carry a hash, and each file also as it travels
 * (.br, .gz). Part of `npm run build`. `node scripts/dashboard.js` by itself, which a clone does before it starts, builds only
 * what is missing or older than its source: it takes seconds, and most starts need none of it.
 */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const source = join(root, 'dashboard');
const target = join(root, 'dist', 'dashboard');

/** @param {string} folder */
const filesIn = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

/** @param {string} file */
const changedAt = (file) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;

export const isDashboardBuilt = () => {
  const builtAt = changedAt(join(target, 'index.html'));
  return [...filesIn(source), join(root, 'package.json')].every((file) => changedAt(file) <= builtAt);
};

export async function buildDashboard() {
  const { build } = await import('vite');
  await build({
    root: source,
    configFile: false,
    logLevel: 'warn',
    base: '/',
    build: {
      outDir: target,
      emptyOutDir: true,
      target: 'es2022',
      // A data: address in place of a small file is one more thing that a policy has to allow.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      rolldownOptions: { checks: { pluginTimings: false } },
    },
  });
  for (const file of filesIn(target)) {
    const bytes = readFileSync(file);
    writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
    writeFileSync(
      `${file}.br`,
      brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } }),
    );
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !isDashboardBuilt()) await buildDashboard();
