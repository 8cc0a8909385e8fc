/**
 * Loads a TypeScript file of the user's: settings, an agent, an environment. It may lie anywhere, in a package of either
 * kind of modules, and import other files. What it imports from 'pawl' is this very installation, its instances included,
 * whether or not the package can be found from its folder.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ConfigError } from './errors.ts';

/** The entries of package.json's `exports`; each is loaded when a file asks for it. */
const installation = {
  get pawl() {
    return import('./index.ts');
  },
  get 'pawl/engine'() {
    return import('./index-engine.ts');
  },
};

/** jiti would keep its work in a folder under /tmp that another user of this machine may have made. */
function cacheFor(path: string): string | false {
  const packages = join(dirname(path), 'node_modules');
  return existsSync(packages) && join(packages, '.cache', 'pawl');
}

export async function importUserModule(path: string): Promise<Readonly<Record<string, unknown>>> {
  if (!existsSync(path)) throw new ConfigError(`There is no file ${path}.`);
  const { createJiti } = await import('jiti');
  const jiti = createJiti(path, { fsCache: cacheFor(path), interopDefault: false, virtualModules: installation });
  try {
    return await jiti.import<Record<string, unknown>>(path);
  } catch (error) {
    throw new ConfigError(`${path} cannot be loaded: ${messageOf(error)}${placeIn(dirname(path), error)}`, {
      cause: error,
    });
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Where in the user's own files it happened. */
function placeIn(folder: string, error: unknown): string {
  const frames = error instanceof Error ? (error.stack ?? '').split('\n').slice(1) : [];
  const own = frames.find((frame) => frame.includes(folder) && !frame.includes('node_modules'));
  return own === undefined ? '' : `\n  ${own.trim()}`;
}
