/**
 * Holds a call back while Pawl's own engine loads what is to answer it: a release that has just come into play, or after a
 * start. Null, on the usual way, where there is nothing to wait for. A load that fails or takes too long lets the call go on,
 * to be answered by the fallback or refused as any call to a server that is away.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Release } from '../deploy/release.ts';
import type { Picked } from '../deploy/routes.ts';
import type { KeptEngine } from '../engine/keep.ts';
import { engineUpstream } from '../engine/open.ts';

const waitMs = 60_000;
/** Where the baseline could answer instead. */
const candidateWaitMs = 10_000;

export type Loading = (picked: Picked) => Promise<void> | null;

export function createLoading(engine: Pick<KeptEngine, 'isReady' | 'ready'>): Loading {
  const isLoaded = ({ upstream, model, checkpoint }: Release): boolean =>
    upstream !== engineUpstream || checkpoint === null || engine.isReady(model);
  const load = async ({ model, checkpoint }: Release, waitMs: number): Promise<void> => {
    const enough = new AbortController();
    const late = sleep(waitMs, undefined, { signal: enough.signal });
    await Promise.race([engine.ready({ model, checkpoint: checkpoint! }), late]).catch(() => {});
    enough.abort();
    await late.catch(() => {});
  };
  return ({ release, fallback }) => {
    if (isLoaded(release)) return null;
    return load(release, fallback !== null && isLoaded(fallback) ? candidateWaitMs : waitMs);
  };
}
