/** An agent whose file names a model, and that no release serves yet, is served by that model. */

import { isReference } from '../artifacts/artifact.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { keepCheckpoint } from '../engine/keep-checkpoint.ts';
import { engineUpstream } from '../engine/open.ts';
import { EngineError } from '../errors.ts';
import type { Store } from '../store/postgres.ts';
import { servingRelease } from '../store/releases.ts';
import { createRelease, serveRelease } from './reconcile.ts';

/** Nobody asks whether it fits: without it nothing at all would answer. */
const reason =
  'It is the model that the agent’s file names (train.base); no other server is in the settings, and nothing served yet.';

type Named = { readonly name: string; readonly train: { readonly base?: string | undefined } };

export async function serveFirst(store: Store, artifacts: Artifacts, agents: readonly Named[]): Promise<void> {
  for (const { name: agent, train } of agents) {
    if (train.base === undefined || (await servingRelease(store, agent)) !== null) continue;
    const now = Date.now();
    const name = `${agent}-0`;
    const checkpoint = await keptOr(train.base, artifacts);
    const base = { agent, name, upstream: engineUpstream, model: name, checkpoint };
    await serveRelease(store, await createRelease(store, base, 'pawl', now), 'pawl', now, { reason });
  }
}

/** A folder that is no checkpoint is left to the engine, which says so whenever it is asked for it. */
const keptOr = async (base: string, artifacts: Artifacts): Promise<string> =>
  isReference(base)
    ? base
    : keepCheckpoint(artifacts, base).catch((error: unknown) => {
        if (error instanceof EngineError) return base;
        throw error;
      });
