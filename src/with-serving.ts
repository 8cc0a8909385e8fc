/**
 * For commands that need a gateway: the Pawl that serves this home, or the gateway and workers of its database, or, where there are
 * none, one for as long as the command takes.
 */
import type { Config } from './config.ts';
import type { Reach } from './deploy/fit-command.ts';
import type { Engine } from './engine/engine.ts';
import { BoundaryError } from './errors.ts';
import { openLog } from './log.ts';
import { findServing } from './roles/presence.ts';
import { servingAddress } from './store/address.ts';
import { openStore, type Store } from './store/postgres.ts';

export type Reached = {
  readonly store: Store;
  /** Address of the gateway, without /v1. */
  readonly url: string;
  /** That of the Pawl which was started for this; null where another process has one. */
  readonly engine: (() => Promise<Engine>) | null;
  /** What trains there. */
  readonly trainer: (() => Promise<Engine>) | null;
};

export async function withServing<T>(
  config: Config,
  signal: AbortSignal,
  use: (reached: Reached) => Promise<T>,
): Promise<T> {
  const { home, databaseUrl } = config;
  const here = servingAddress(home);
  if (here !== null || databaseUrl !== undefined) {
    const store = await openStore({ home, databaseUrl, join: true, signal });
    try {
      const url = here ?? (await findServing(store));
      if (url !== null) return await use({ store, url, engine: null, trainer: null });
    } finally {
      await store.close();
    }
  }
  const { serve } = await import('./serve.ts');
  const { log, linesLost } = openLog(process.env.PAWL_LOG ?? 'warn');
  const serving = await serve({ ...config, host: '127.0.0.1', port: 0 }, log, {
    // Standard output is the command's.
    show: async (name, token) => console.error(`${name}: ${token}   (shown only now)`),
    say: (text) => console.error(text),
    roles: ['gateway', 'api'],
    passing: true,
    linesLost,
    signal,
  });
  try {
    if (!serving.isConnected) throw new BoundaryError(serving.problems().join('; '), { retryable: true });
    const engine = async () => (await serving.engine.process()).engine;
    return await use({ store: serving.store, url: serving.url, engine, trainer: serving.engine.trainer });
  } finally {
    await serving.close();
  }
}

/** For commands that let a release begin to serve (deploy/fit-command.ts). */
export const reach: Reach = {
  running: async ({ home, databaseUrl }, store) =>
    servingAddress(home) ?? (databaseUrl === undefined ? null : await findServing(store)),
  started: (config, use) => withServing(config, new AbortController().signal, use),
};
