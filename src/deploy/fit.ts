/**
 * The door to the users: whatever begins to serve has been asked, on the server that it will serve from, whether it can do what the
 * agent's traffic needs (evaluate/compatibility.ts). Every way in goes through it: serving a release, a rollout however it begins or is
 * approved, a pin. A check that was passed lately is good; otherwise it is made then and there.
 *
 * The model that an agent's file names is let in by it at a first start too, and has no user until then (first-release.ts).
 *
 * Nobody waits for it:
 *   where nothing serves the agent yet, it has no traffic, and its settings ask for nothing: there is nothing to fit
 *   with what serves, and when what has served everybody before is served again, or pinned: the way back must be open while servers are
 *     away
 *   with the kill switch, which lets in nothing that never served and never passed (`mustBeKnown`)
 *   where `deploy.compatibility` is off
 *
 * Routing by type of task chooses between the two releases of a rollout, both of which came through here; one that a later check found
 * unfit is left out (task-routing.ts).
 */
import type { Config } from '../config.ts';
import { UnfitError } from '../errors.ts';
import { checkCompatibility, neededOf, serverOf } from '../evaluate/check-compatibility.ts';
import {
  type CheckName,
  type Compatibility,
  type CompatibilitySettings,
  compatibilitySettings,
  covers,
  type Needs,
  needsInWords,
} from '../evaluate/compatibility.ts';
import type { Door } from '../evaluate/door.ts';
import { readAudit } from '../store/audit.ts';
import { readCompatibility } from '../store/compatibility.ts';
import type { Store } from '../store/postgres.ts';
import { listReleases, servingRelease } from '../store/releases.ts';
import { listRollouts } from '../store/rollouts.ts';
import { audit } from './audit.ts';
import type { Release } from './release.ts';
import type { MeasuredOrigin, RolloutSettings } from './rollout.ts';

/** What of an agent's definition the door goes by. */
export type FitAgent = {
  readonly name: string;
  readonly evaluate: { readonly compatibility?: CompatibilitySettings | undefined };
  readonly deploy: Pick<RolloutSettings, 'compatibility'>;
  readonly curate: { readonly on: MeasuredOrigin };
};

export type FitParts = {
  readonly store: Store;
  readonly upstreams: Config['upstreams'];
  /** Lends a way in at a gateway that can be reached from here. */
  readonly withDoor: <T>(use: (door: Door) => Promise<T>) => Promise<T>;
  /** Says what is being asked, for whoever waits. */
  readonly say?: ((text: string) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
};

export type FitAsked = {
  readonly actor: string;
  /** What is about to happen, as the audit log has it: serve, rollout, approve, promote, pin, kill. */
  readonly way: string;
  /** Why a person lets it through all the same. */
  readonly unfit?: string | undefined;
};

/** Asked with a release right before it begins to serve; throws an UnfitError where it must not. */
export type Fit = (release: Release) => Promise<void>;

/** What has served everybody: by a person's word, by a promotion, as what was to be replaced. */
async function hasServed(store: Store, { id, agent }: Release): Promise<boolean> {
  for (const event of ['release-served', 'kill-switch-pulled'])
    if ((await readAudit(store, { agent, subject: id, event, limit: 1 })).length > 0) return true;
  return (await listRollouts(store, { agent, candidate: id, phase: 'promoted', limit: 1 })).length > 0;
}

const waysBack: ReadonlySet<string> = new Set(['serve', 'pin']);

/** What a release has still to be asked, and where. */
type Unasked = {
  readonly needs: Needs;
  readonly server: string;
  readonly serving: Release | null;
  /** As it was last found, however long ago. */
  readonly known: Compatibility | null;
};

/** Null: nothing stands in its way. */
export async function yetToBeAsked(
  { store, upstreams }: Pick<FitParts, 'store' | 'upstreams'>,
  agent: FitAgent,
  release: Release,
  { way }: Pick<FitAsked, 'way'>,
): Promise<Unasked | null> {
  const now = Date.now();
  if (agent.deploy.compatibility === 'off') return null;
  const serving = await servingRelease(store, agent.name);
  if (serving?.id === release.id || (waysBack.has(way) && (await hasServed(store, release)))) return null;
  const needs = await neededOf(store, upstreams, agent, release, now);
  if (needs === null || (serving === null && asksNothing(agent, needs))) return null;
  const server = serverOf(upstreams, release);
  const { goodForSeconds } = agent.evaluate.compatibility ?? compatibilitySettings.parse({});
  const known = await readCompatibility(store, { agent: agent.name, release: release.name });
  const isGood =
    known?.needs !== undefined &&
    isFit(known) &&
    known.server === server &&
    known.at >= now - goodForSeconds * 1000 &&
    covers(known.needs, needs);
  return isGood ? null : { needs, server, serving, known };
}

export async function mustFit(parts: FitParts, agent: FitAgent, release: Release, asked: FitAsked): Promise<void> {
  const { store, withDoor, say = () => {}, signal } = parts;
  const unasked = await yetToBeAsked(parts, agent, release, asked);
  if (unasked === null) return;
  const { needs, server, serving, known } = unasked;
  if (asked.unfit !== undefined) return letThrough(store, release, asked, asked.unfit, known);
  say(`Checking whether release ${release.name} fits ${server}: ${needsInWords(needs)}.`);
  const found = await withDoor((door) =>
    checkCompatibility(store, {
      ...{ agent: agent.name, release: release.name, serving: serving?.name, server, needs, door },
      ...{ by: asked.actor, signal, onCheck: (name: CheckName) => say(`  ${name} …`) },
    }),
  );
  if (!isFit(found)) throw refusal(release, server, found);
  for (const { name, verdict, reason } of found.checks)
    if (verdict === 'inconclusive' || verdict === 'unmeasured') say(`  ${name} could not be told: ${reason}`);
}

/** Neither its settings nor its traffic say what this agent needs. */
const asksNothing = ({ evaluate }: FitAgent, { contextTokens, tools, structured }: Needs): boolean =>
  evaluate.compatibility === undefined && contextTokens === null && !tools && !structured;

/** For the kill switch, which waits for nothing: what it is pulled to has served, or passed a check once. */
export async function mustBeKnown(store: Store, agent: FitAgent, release: Release, asked: FitAsked): Promise<void> {
  if (agent.deploy.compatibility === 'off') return;
  const serving = await servingRelease(store, agent.name);
  if (serving?.id === release.id || (await hasServed(store, release))) return;
  const known = await readCompatibility(store, { agent: agent.name, release: release.name });
  if (known !== null && isFit(known)) return;
  if (asked.unfit !== undefined) return letThrough(store, release, asked, asked.unfit, known);
  throw new UnfitError(
    `Release ${release.name} has never served ${agent.name}${known === null ? ' and was never checked' : ', and was found not to fit its server'}; the kill switch does not wait for a check. Name one that has served, or none; --unfit "why" (unfit in the API) lets it through all the same and stands in the audit log.`,
    { retryable: false },
  );
}

async function letThrough(
  store: Store,
  { id, name, agent }: Release,
  { actor, way }: FitAsked,
  reason: string,
  known: Compatibility | null,
): Promise<void> {
  const details = { name, way, reason, lastFound: known?.verdict ?? null };
  await audit(store.db, {
    ...{ agent, actor, event: 'compatibility-overridden', subject: id, details, at: Date.now() },
  });
}

/** What could not be told either way holds nobody up; a server that gave no answer does, for that is no place to send users. */
export const isFit = ({ verdict }: Pick<Compatibility, 'verdict'>): boolean =>
  verdict === 'pass' || verdict === 'inconclusive';

/** In a sentence or more, with the check, its number and its limit. */
export function whyNot(
  name: string,
  server: string,
  { verdict, checks }: Pick<Compatibility, 'verdict' | 'checks'>,
): string {
  const isFailed = verdict === 'fail';
  const held = checks.filter((check) => check.verdict === verdict).slice(0, isFailed ? checks.length : 1);
  const found = held
    .map(({ name: check, reason }) => `${check}: ${reason}${/[.!?]$/.test(reason) ? '' : '.'}`)
    .join(' ');
  return `Release ${name} gets no user: ${isFailed ? `it does not fit ${server}` : `whether it fits ${server} could not be told`}. ${found}`;
}

/** What lets it serve all the same. */
export const unfitCommand = ({ name, agent }: Pick<Release, 'name' | 'agent'>): string =>
  `pawl releases serve ${name} --agent ${agent} --unfit "why"`;

const newest = 20;

/** Where nothing serves an agent: the newest release that was asked, and why it does not fit; null: none was, or it fits. */
export async function foundUnfit(
  store: Store,
  agent: string,
): Promise<{ readonly release: Release; readonly sentence: string } | null> {
  if ((await servingRelease(store, agent)) !== null) return null;
  for (const release of await listReleases(store, { agent, limit: newest })) {
    const found = await readCompatibility(store, { agent, release: release.name });
    if (found === null) continue;
    const { verdict, server = release.upstream } = found;
    return verdict === 'fail' ? { release, sentence: whyNot(release.name, server, found) } : null;
  }
  return null;
}

function refusal({ name, agent }: Release, server: string, found: Compatibility): UnfitError {
  return new UnfitError(
    `${whyNot(name, server, found)} \`pawl evaluate compat ${name} --agent ${agent}\` checks it again; --unfit "why" (unfit in the API) lets it through all the same and stands in the audit log.`,
    { retryable: found.verdict !== 'fail' },
  );
}
