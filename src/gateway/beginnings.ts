/**
 * Which release a conversation began with, where this process does not remember: it began at another gateway, or before a restart.
 * Asked of the database, and only about conversations that go on while two releases are in play and that would get the newer one. What
 * it cannot say at once is not waited for: then the user's own assignment decides, as for a conversation that begins.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { isObject } from '../collect/untrusted.ts';
import { firstRelease } from '../store/beginnings.ts';
import type { Store } from '../store/postgres.ts';

const waitMs = 150;
const mostAtOnce = 16;

export type Beginnings = {
  /** Name of the release; null where nobody knows in time. */
  of(agent: string, trajectory: string): Promise<string | null>;
};

export function createBeginnings(store: () => Store | null): Beginnings {
  let asking = 0;
  return {
    async of(agent, trajectory) {
      const known = store();
      if (known === null || asking >= mostAtOnce) return null;
      asking++;
      const found = firstRelease(known, { agent, trajectory }, Date.now())
        .catch(() => null)
        .finally(() => asking--);
      const enough = new AbortController();
      const late = sleep(waitMs, null, { signal: enough.signal }).catch(() => null);
      const name = await Promise.race([found, late]);
      enough.abort();
      return name;
    },
  };
}

/** With three entries a request may hold a question, an answer and what follows. */
const fewestEntries = 3;

/**
 * An answer of the agent's, or what refers to one, stands in the request. Of a long list that was scanned and not read (scan.ts) only the
 * length is known; to ask once too often costs little.
 */
export function goesOn({
  messages,
  input,
  previous_response_id: previous,
}: Readonly<Record<string, unknown>>): boolean {
  if (typeof previous === 'string') return true;
  const said = Array.isArray(messages) ? messages : Array.isArray(input) ? input : [];
  if (said.length > 0 && said[0] === undefined) return said.length >= fewestEntries;
  return said.some((one) => isObject(one) && (one.role === 'assistant' || one.type === 'function_call'));
}
