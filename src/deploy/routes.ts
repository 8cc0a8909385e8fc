/**
 * Which release answers a call, known in memory so that the gateway asks nobody. `pick` is on the hot path: two map lookups
 * and, during a rollout, one hash. `watchRoutes` keeps the memory equal to the database, at every change it announces and
 * every few seconds besides; while the database is away, the last known routes stand.
 *
 * A trajectory keeps the release it began with while that one is in play: growing weights move users from the baseline to
 * the candidate, but not in the middle of a conversation. What began where is remembered for the newest trajectories of this
 * process only; after a restart, or in another gateway, the user's own assignment decides.
 */
import type { Logger } from 'pino';
import { follow } from '../store/follow.ts';
import type { Store } from '../store/postgres.ts';
import { readRoutes, routesChannel, type StoredRoute } from '../store/rollouts.ts';
import { isAssigned, unitOf } from './assign.ts';
import type { Release } from './release.ts';
import { weightOf } from './rollout.ts';

export type Picked = {
  readonly release: Release;
  /** Answers in its place should it fail before its first byte. */
  readonly fallback: Release | null;
  /** Its own upstream or none: another's answer would say nothing about it. */
  readonly alone?: boolean;
};

export type Caller = { readonly agent: string; readonly user: string | null; readonly trajectory: string | null };

export type Routes = {
  /** null: the model is not the agent's own name or alias, so the call is none of ours. */
  pick(model: string, caller: Caller): Picked | null;
  replace(routes: readonly StoredRoute[]): void;
};

type Route = {
  readonly names: ReadonlySet<string>;
  readonly release: Release;
  readonly canary: { readonly rollout: string; readonly weight: number; readonly candidate: Release } | null;
};

const rememberedTrajectories = 50_000;

export function createRoutes(draw: () => number = Math.random): Routes {
  let byAgent: ReadonlyMap<string, Route> = new Map();
  // Two generations: when the newer is full it becomes the older. Bounded, and what is used stays.
  let newer = new Map<string, string>();
  let older = new Map<string, string>();
  const begunWith = (key: string): string | undefined => newer.get(key) ?? older.get(key);
  const remember = (key: string, release: string) => {
    if (newer.size >= rememberedTrajectories) {
      older = newer;
      newer = new Map();
    }
    newer.set(key, release);
  };

  const assigned = ({ release, canary }: Route, { user, trajectory }: Caller, begun: string | undefined): Release => {
    if (canary === null || begun === release.id) return release;
    if (begun === canary.candidate.id) return canary.candidate;
    const unit = unitOf(user, trajectory);
    const isIn = unit === null ? draw() < canary.weight : isAssigned(canary.rollout, unit, canary.weight);
    return isIn ? canary.candidate : release;
  };

  return {
    pick(model, caller) {
      const route = byAgent.get(caller.agent);
      if (route === undefined || !route.names.has(model)) return null;
      const key = caller.trajectory === null ? null : `${caller.agent}\u0000${caller.trajectory}`;
      const release = assigned(route, caller, key === null ? undefined : begunWith(key));
      if (key !== null) remember(key, release.id);
      return { release, fallback: release.id === route.release.id ? null : route.release };
    },
    replace(routes) {
      byAgent = new Map(
        routes.map(({ agent, aliases, release, open }) => {
          const weight = open === null ? 0 : weightOf(open.rollout);
          const canary = open && weight > 0 ? { rollout: open.rollout.id, weight, candidate: open.candidate } : null;
          return [agent, { names: new Set([agent, ...aliases]), release, canary }];
        }),
      );
    },
  };
}

export function watchRoutes(
  store: Store,
  routes: Pick<Routes, 'replace'>,
  log: Logger,
): Promise<{ close(): Promise<void> }> {
  const refresh = async () => routes.replace(await readRoutes(store));
  return follow(store, { channel: routesChannel, name: 'routes', refresh }, log);
}
