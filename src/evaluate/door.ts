/**
 * The gateway, as an evaluation goes through it: an address, and a key that lives as long as the evaluation. The key may name
 * the release that answers, and whatever comes with it is recorded as an evaluation's.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { endKey, makeKey } from '../client-keys.ts';
import { BoundaryError } from '../errors.ts';
import { listKeys } from '../store/keys.ts';
import type { Store } from '../store/postgres.ts';
import { upTo } from '../up-to.ts';

export type Door = {
  /** Address of the gateway, without /v1. */
  readonly url: string;
  readonly key: string;
};

const keyName = 'pawl evaluate';
const leftAfterMs = 24 * 3_600_000;
const mostBytes = 1024 * 1024;
const knownWithinMs = 30_000;

/** Makes the key, waits until the gateway knows it, and revokes it when `use` has ended in whatever way. */
export async function withDoor<T>(
  store: Store,
  { agent, url, signal }: { readonly agent: string; readonly url: string; readonly signal?: AbortSignal },
  use: (door: Door) => Promise<T>,
): Promise<T> {
  await revokeLeftOver(store, agent);
  const { key, token } = await makeKey(
    store,
    { agent, name: keyName, origin: 'evaluation', scopes: ['call', 'evaluate'] },
    'pawl',
  );
  try {
    await untilKnown(url, token, signal);
    return await use({ url, key: token });
  } finally {
    await endKey(store, key.id, 'pawl');
  }
}

/** Keys of evaluations that were killed before they could end theirs. */
async function revokeLeftOver(store: Store, agent: string): Promise<void> {
  const before = Date.now() - leftAfterMs;
  for (const { id, name, origin, createdAt, revokedAt } of await listKeys(store, { agent }))
    if (name === keyName && origin === 'evaluation' && revokedAt === null && createdAt.getTime() < before)
      await endKey(store, id, 'pawl');
}

/** A gateway hears of a new key within a moment. A call without a body reaches no model. */
async function untilKnown(url: string, token: string, signal?: AbortSignal): Promise<void> {
  let lastly = '';
  for (const end = Date.now() + knownWithinMs; Date.now() < end; await sleep(50, undefined, { signal })) {
    const late = AbortSignal.timeout(5_000);
    try {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}` },
        signal: signal === undefined ? late : AbortSignal.any([signal, late]),
      });
      const said = await upTo(mostBytes, response.body);
      lastly = `it answered ${response.status}: ${said?.toString('utf8').slice(0, 200) ?? 'with too much'}`;
      if (response.status === 400) return;
    } catch (error) {
      signal?.throwIfAborted();
      lastly = (error as Error).message;
    }
  }
  throw new BoundaryError(
    `The gateway at ${url} does not take the evaluation’s key after ${knownWithinMs / 1000} s (${lastly}). Is it the Pawl of this home?`,
    { retryable: true },
  );
}
