/** Forgetting is done by one process at a time over all that share a database. */
import { hostname } from 'node:os';
import { leading } from '../store/lead.ts';
import type { Store } from '../store/postgres.ts';

/** Null: another process is at it. */
export const alone = <T>(
  store: Store,
  name: string,
  work: (lost: AbortSignal) => Promise<T>,
): Promise<{ readonly done: T } | null> =>
  leading(store, `pawl ${name}`, `${hostname()}:${process.pid}:${name}`, ({ lost }) => work(lost));
