/** An agent whose file names a model, and that no release serves yet, is served by that model. */
import { engineUpstream } from '../engine/open.ts';
import type { Store } from '../store/postgres.ts';
import { servingRelease } from '../store/releases.ts';
import { createRelease, serveRelease } from './reconcile.ts';

type Named = { readonly name: string; readonly train: { readonly base?: string | undefined } };

export async function serveFirst(store: Store, agents: readonly Named[]): Promise<void> {
  for (const { name: agent, train } of agents) {
    if (train.base === undefined || (await servingRelease(store, agent)) !== null) continue;
    const now = Date.now();
    const name = `${agent}-0`;
    const base = { agent, name, upstream: engineUpstream, model: name, checkpoint: train.base };
    await serveRelease(store, await createRelease(store, base, 'pawl', now), 'pawl', now);
  }
}
