/** For commands that need a gateway: the Pawl that serves this home, or, where none does, one for as long as the command takes. */
import type { Config } from './config.ts';
import type { Engine } from './engine/engine.ts';
import { BoundaryError } from './errors.ts';
import { openLog } from './log.ts';
import { servingAddress } from './store/address.ts';
import { openStore, type Store } from './store/postgres.ts';

export type Reached = {
  readonly store: Store;
  /** Address of the gateway, without /v1. */
  readonly url: string;
  /** That of the Pawl which was started for this; null where another process has one. */
  readonly engine: (() => Promise<Engine>) | null;
};

export async function withServing<T>(
  config: Config,
  signal: AbortSignal,
  use: (reached: Reached) => Promise<T>,
): Promise<T> {
  const url = servingAddress(config.home);
  if (url !== null) {
    const store = await openStore({ home: config.home, databaseUrl: config.databaseUrl, join: true, signal });
    try {
      return await use({ store, url, engine: null });
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
    background: false,
    linesLost,
    signal,
  });
  try {
    if (!serving.isConnected) throw new BoundaryError(serving.problems().join('; '), { retryable: true });
    const engine = async () => (await serving.engine.process()).engine;
    return await use({ store: serving.store, url: serving.url, engine });
  } finally {
    await serving.close();
  }
}
