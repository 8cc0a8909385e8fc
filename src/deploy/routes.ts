/**
 * Which release answers a call, known in memory so that the gateway asks nobody. `pick` is on the hot path: two map lookups
 * and, during a rollout, one hash. `watchRoutes` keeps the memory equal to the database, at every change it announces and
 * every few seconds besides; while the database is away, the last known routes stand.
 *
 * A trajectory keeps the release it began with while that one is in play: growing weights move users from the baseline to
 * the candidate, but not in the middle of a conversation. What began where is remembered for the newest trajectories of this
 * process; of one that began elsewhere, or before a restart, `pick` says that it is unsure, and whoever asks may find out and say so
 * (`began`). Otherwise the user's own assignment decides.
 */
import type { Logger } from 'pino';
import { follow } from '../store/follow.ts';
import type { Store } from '../store/postgres.ts';
import { readRoutes, routesChannel, type StoredRoute } from '../store/rollouts.ts';
import { isAssigned, unitOf } from './assign.ts';
import type { Release } from './release.ts';
import { isShadowing, type MeasuredOrigin, weightOf } from './rollout.ts';
import type { ShadowSettings } from './shadow.ts';

export type Picked = {
  readonly release: Release;
  /** Answers in its place should it fail before its first byte. */
  readonly fallback: Release | null;
  /** Its own upstream or none: another's answer would say nothing about it. */
  readonly alone?: boolean;
  /** How long its first byte is waited for where there is a fallback. */
  readonly firstByteMs?: number;
  /** The conversation goes on, and where it began is not known here. */
  readonly unsure?: boolean;
  /** Set where the candidate is asked too, once the user has their answer. */
  readonly shadow?: Shadowing | null;
};

/** A rollout in shadow that this conversation was drawn for. */
export type Shadowing = {
  readonly rollout: string;
  readonly candidate: Release;
  readonly settings: ShadowSettings;
  /** The traffic that is compared. */
  readonly origin: MeasuredOrigin;
};

export type Caller = {
  readonly agent: string;
  readonly user: string | null;
  readonly trajectory: string | null;
  /** Id of the client key. */
  readonly key?: string;
  /** What the request says it is about. */
  readonly taskType?: string | null;
  /** Whether the request goes on with a conversation, as far as it shows that; asked where it matters. */
  readonly continues?: () => boolean;
  /** The user as the database knows them; asked for where somebody is pinned. */
  readonly hashed?: () => string | null;
};

export type Routes = {
  /**
   * null: the model is not the agent's own name or alias, so the call is none of ours. A candidate that may not be chosen now is as
   * one that is not in play.
   */
  pick(model: string, caller: Caller, mayChoose?: (candidate: Release) => boolean): Picked | null;
  /** What a trajectory began with, by name; nothing where that one is not in play. */
  began(caller: Pick<Caller, 'agent' | 'trajectory'>, release: string): void;
  replace(routes: readonly StoredRoute[]): void;
};

type Better = Pick<StoredRoute['tasks'][number], 'release' | 'firstByteMs'>;

type Route = {
  readonly names: ReadonlySet<string>;
  readonly release: Release;
  readonly canary: {
    readonly rollout: string;
    readonly weight: number;
    readonly candidate: Release;
    readonly firstByteMs: number;
  } | null;
  readonly shadow: Shadowing | null;
  /** By type of task, where another release is better at it. */
  readonly tasks: ReadonlyMap<string, Better>;
  readonly pins: { readonly key: ReadonlyMap<string, Release>; readonly user: ReadonlyMap<string, Release> };
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

  const assigned = (
    { release, canary }: Route,
    { user, trajectory }: Caller,
    begun: string | undefined,
    mayChoose: (candidate: Release) => boolean,
  ): Release => {
    if (canary === null || begun === release.id || !mayChoose(canary.candidate)) return release;
    if (begun === canary.candidate.id) return canary.candidate;
    const unit = unitOf(user, trajectory);
    const isIn = unit === null ? draw() < canary.weight : isAssigned(canary.rollout, unit, canary.weight);
    return isIn ? canary.candidate : release;
  };

  /**
   * The release that is better at this type of task. A conversation that began with another stays there; and a candidate's users are drawn by
   * its rollout alone.
   */
  const betterAt = (
    { release, canary, tasks }: Route,
    { taskType }: Caller,
    begun: string | undefined,
    mayChoose: (candidate: Release) => boolean,
  ): Better | null => {
    const [of] = tasks.values();
    if (of === undefined || of.release.id === canary?.candidate.id || !mayChoose(of.release)) return null;
    if (begun === of.release.id) return of;
    if (begun !== undefined && (begun === release.id || begun === canary?.candidate.id)) return null;
    return (typeof taskType === 'string' ? tasks.get(taskType) : undefined) ?? null;
  };

  /** By conversation, so that one that is drawn is followed from turn to turn. */
  const isDrawn = (shadow: Shadowing | null, { user, trajectory }: Caller): boolean => {
    if (shadow === null) return false;
    const unit = unitOf(null, trajectory) ?? unitOf(user, null);
    const { share } = shadow.settings;
    return unit === null ? draw() < share : isAssigned(`${shadow.rollout} shadow`, unit, share);
  };

  return {
    pick(model, caller, mayChoose = () => true) {
      const route = byAgent.get(caller.agent);
      if (route === undefined || !route.names.has(model)) return null;
      const pinned = pinnedTo(route, caller);
      if (pinned !== null) return { release: pinned, fallback: null };
      const key = keyOf(caller);
      const begun = key === null ? undefined : begunWith(key);
      const better = betterAt(route, caller, begun, mayChoose);
      const release = better?.release ?? assigned(route, caller, begun, mayChoose);
      if (begun === undefined && key !== null && isUnsure(route, release) && caller.continues?.() === true)
        return { release, fallback: null, unsure: true };
      if (key !== null) remember(key, release.id);
      if (release.id === route.release.id)
        return { release, fallback: null, shadow: isDrawn(route.shadow, caller) ? route.shadow : null };
      const firstByteMs = better === null ? route.canary!.firstByteMs : better.firstByteMs;
      return { release, fallback: route.release, ...(firstByteMs === undefined ? {} : { firstByteMs }) };
    },
    began(caller, name) {
      const key = keyOf(caller);
      const route = byAgent.get(caller.agent);
      if (key === null || route === undefined) return;
      const inPlay = [route.release, route.canary?.candidate, [...route.tasks.values()][0]?.release];
      const found = inPlay.find((one) => one?.name === name);
      if (found !== undefined) remember(key, found.id);
    },
    replace(routes) {
      byAgent = new Map(
        routes.map(({ agent, aliases, release, pins = [], tasks = [], open }) => [
          agent,
          {
            ...{ names: new Set([agent, ...aliases]), release, ...openFrom(open), pins: pinsFrom(pins) },
            tasks: new Map(tasks.map(({ type, ...better }) => [type, better])),
          },
        ]),
      );
    },
  };
}

const keyOf = ({ agent, trajectory }: Pick<Caller, 'agent' | 'trajectory'>): string | null =>
  trajectory === null ? null : `${agent}\u0000${trajectory}`;

/** Weights only grow, so without types of task whoever gets the serving release has had it before. */
const isUnsure = ({ release, tasks }: Route, picked: Release): boolean => tasks.size > 0 || picked.id !== release.id;

/** Last known routes may be older than pins. */
const pinsFrom = (pins: StoredRoute['pins']): Route['pins'] => {
  const of = (kind: 'key' | 'user') =>
    new Map(pins.filter((pin) => pin.kind === kind).map(({ value, release }) => [value, release]));
  return { key: of('key'), user: of('user') };
};

function pinnedTo({ pins }: Route, { key, hashed }: Caller): Release | null {
  if (pins.user.size > 0) {
    const user = hashed?.() ?? null;
    const release = user === null ? undefined : pins.user.get(user);
    if (release !== undefined) return release;
  }
  return (pins.key.size > 0 && key !== undefined ? pins.key.get(key) : undefined) ?? null;
}

function openFrom(open: StoredRoute['open']): Pick<Route, 'canary' | 'shadow'> {
  if (open === null) return { canary: null, shadow: null };
  const { rollout, candidate } = open;
  const { settings } = rollout;
  const weight = weightOf(rollout);
  return {
    canary:
      weight > 0 ? { rollout: rollout.id, weight, candidate, firstByteMs: settings.firstByteSeconds * 1000 } : null,
    shadow: isShadowing(rollout)
      ? { rollout: rollout.id, candidate, settings: settings.shadow, origin: settings.origin ?? 'production' }
      : null,
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
