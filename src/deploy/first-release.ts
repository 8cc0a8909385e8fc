/**
 * An agent whose file names a model, and that no release serves yet, is served by that model: at once where nothing says what its users
 * need, else once it was asked whether it fits (roles/first-releases.ts). Until then it is registered and nobody gets it.
 */

import { isReference } from '../artifacts/artifact.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { keepCheckpoint } from '../engine/keep-checkpoint.ts';
import { engineUpstream } from '../engine/open.ts';
import { EngineError } from '../errors.ts';
import { needsInWords } from '../evaluate/compatibility.ts';
import { readCompatibility } from '../store/compatibility.ts';
import type { Store } from '../store/postgres.ts';
import { readRelease, servingRelease } from '../store/releases.ts';
import { type FitAgent, type FitAsked, isFit, yetToBeAsked } from './fit.ts';
import { createRelease, serveRelease } from './reconcile.ts';
import { makeRelease, type NewRelease, type Release } from './release.ts';

export type FirstAgent = FitAgent & { readonly train: { readonly base?: string | undefined } };

/** What is to be an agent's first release, and what it has to be asked before. */
export type First = {
  readonly agent: FitAgent;
  readonly release: Release;
  readonly server: string;
  readonly asked: string;
};

/** Why nobody answers an agent’s calls: what is to serve it first was not let in. */
export type Held = {
  /** It was asked, and a person or another start has to say what now; else it may be let in within moments. */
  readonly isUnfit: boolean;
  readonly sentence: string;
};

export const firstAsked: FitAsked = { actor: 'pawl', way: 'serve' };

/** Those that have to be asked first are registered, and returned. */
export async function serveFirst(store: Store, artifacts: Artifacts, agents: readonly FirstAgent[]): Promise<First[]> {
  const waiting: First[] = [];
  for (const agent of agents) {
    const { name, train } = agent;
    if (train.base === undefined || (await servingRelease(store, name)) !== null) continue;
    const release = await register(store, name, await keptOr(train.base, artifacts));
    const unasked = await yetToBeAsked({ store, upstreams: {} }, agent, release, firstAsked);
    if (unasked === null) await letServe(store, release);
    else waiting.push({ agent, release, server: unasked.server, asked: needsInWords(unasked.needs) });
  }
  return waiting;
}

/** False where something else serves by now: a person’s word counts more. */
export async function letServe(store: Store, release: Release): Promise<boolean> {
  const found = await readCompatibility(store, { agent: release.agent, release: release.name });
  const fits =
    found?.needs !== undefined && isFit(found)
      ? `It was asked first, and fits ${found.server}: ${needsInWords(found.needs)}.`
      : 'It was asked for nothing.';
  const reason = `It is the model that the agent’s file names (train.base); no other server is in the settings, and nothing served yet. ${fits}`;
  return serveRelease(store, release, firstAsked.actor, Date.now(), { reason, isFirst: true });
}

/** A name is used once: another model in the agent’s file, after one that did not fit, gets the next. */
async function register(store: Store, agent: string, checkpoint: string): Promise<Release> {
  const now = Date.now();
  for (let n = 1; ; n++) {
    const name = n === 1 ? `${agent}-0` : `${agent}-0.${n}`;
    const given: NewRelease = { agent, name, upstream: engineUpstream, model: name, checkpoint };
    const taken = await readRelease(store, { agent, name });
    if (taken === null || taken.id === makeRelease(given, now).id)
      return createRelease(store, given, firstAsked.actor, now);
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
