/**
 * Whether what is to answer a call is loaded: by Pawl's own engine, or, for an adapter, by the server it is for. A call for a release that
 * is just being loaded is held back: one that has just come into play, or after a start. A load that fails or takes too long lets
 * the call go on, to be answered by the fallback or refused as any call to a server that is away.
 *
 * A candidate whose adapter its server does not have is not even chosen: the server may take minutes, and the baseline is there.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { KeptAdapters } from '../deploy/keep-adapters.ts';
import type { Release } from '../deploy/release.ts';
import type { Picked } from '../deploy/routes.ts';
import type { KeptEngine } from '../engine/keep.ts';
import { engineWeights } from '../engine/open.ts';

const waitMs = 60_000;
/** Where the baseline could answer instead. */
const candidateWaitMs = 10_000;

export type Loading = {
  /** Whether a candidate may be chosen. */
  mayChoose(candidate: Release): boolean;
  /** Null, on the usual way, where there is nothing to wait for. */
  wait(picked: Picked): Promise<void> | null;
  /** Resolves when the release answers. */
  ready(release: Release): Promise<void>;
};

export function createLoading(
  engine: Pick<KeptEngine, 'isReady' | 'ready'>,
  adapters: Pick<KeptAdapters, 'isReady' | 'ready'>,
): Loading {
  const isLoaded = (release: Release): boolean =>
    engineWeights(release) === null ? adapters.isReady(release) : engine.isReady(release.model);
  const ready = (release: Release): Promise<void> => {
    const checkpoint = engineWeights(release);
    return checkpoint === null ? adapters.ready(release) : engine.ready({ model: release.model, checkpoint });
  };
  const load = async (release: Release, waitMs: number): Promise<void> => {
    const enough = new AbortController();
    const late = sleep(waitMs, undefined, { signal: enough.signal });
    await Promise.race([ready(release), late]).catch(() => {});
    enough.abort();
    await late.catch(() => {});
  };
  return {
    mayChoose: (candidate) => adapters.isReady(candidate),
    wait: ({ release, fallback, firstByteMs = candidateWaitMs }) =>
      isLoaded(release) ? null : load(release, fallback !== null && isLoaded(fallback) ? firstByteMs : waitMs),
    ready,
  };
}
