/**
 * Routing by measured success: a release may be better for everybody together and worse at one type of task. While a rollout lasts, users of
 * every type are drawn to both releases, so when it has ended it is known which of the two is better at which type. Where the agent's
 * file says so, types at which the release that does not serve was better go to it, with the figures that showed it, for as long as the other
 * serves; the next rollout decides anew.
 *
 * Not routed to: a release that a person aborted, that something else than outcomes spoke against (errors, latency, a check of one's own), or
 * that was last found not to fit its server (fit.ts).
 */
import { normalQuantile } from '../evaluate/statistics.ts';
import { readAudit } from '../store/audit.ts';
import { readCompatibility } from '../store/compatibility.ts';
import { isFlagOn } from '../store/flags.ts';
import { holds, type Lead } from '../store/lead.ts';
import { readSaid } from '../store/measures.ts';
import type { Store } from '../store/postgres.ts';
import { readKilled, readRelease, servingRelease } from '../store/releases.ts';
import { listRollouts } from '../store/rollouts.ts';
import { putTaskRouting, readTaskRouting } from '../store/task-routings.ts';
import { audit } from './audit.ts';
import type { Both } from './checks/check.ts';
import { isFit } from './fit.ts';
import { compared } from './promotion.ts';
import { look } from './reconcile.ts';
import { isOpen, type Rollout } from './rollout.ts';
import { type Served, sampleOf, slicesThatCount } from './slice.ts';

/** One type of task, and why. */
export type TaskRoute = {
  readonly type: string;
  /** Users with each release. */
  readonly users: Both<number>;
  /** By how much the mean outcome of the release it goes to is above that of the one that serves. */
  readonly difference: number;
  readonly z: number;
  /** What z had to reach. */
  readonly bound: number;
};

export type TaskRouting = {
  readonly agent: string;
  readonly rollout: string;
  /** Ids: what serves, and what answers the types below. */
  readonly serving: string;
  readonly other: string;
  readonly types: readonly TaskRoute[];
  readonly at: number; // ms since epoch
};

const alpha = 0.025;

/** Pure. `steps`: what users of each release got while each step lasted. `to`: the one that does not serve. */
export function taskRoutes(
  steps: readonly Both<Served>[],
  to: keyof Both<unknown>,
  { minUnits }: { readonly minUnits: number },
): TaskRoute[] {
  const types = slicesThatCount(steps.flatMap(({ baseline, candidate }) => [baseline, candidate])).filter(
    ({ dimension }) => dimension === 'task type',
  );
  // Shared by the types that are looked at.
  const bound = normalQuantile(1 - alpha / Math.max(1, types.length));
  return types.flatMap((type) => {
    const own = steps.map(({ baseline, candidate }) => ({
      baseline: sampleOf(baseline, type),
      candidate: sampleOf(candidate, type),
    }));
    const users = {
      baseline: own.reduce((sum, one) => sum + one.baseline.n, 0),
      candidate: own.reduce((sum, one) => sum + one.candidate.n, 0),
    };
    const { difference: above, error } = compared(own);
    const difference = to === 'candidate' ? above : -above;
    const z = difference / error;
    return type.name !== 'unknown' && Math.min(users.baseline, users.candidate) >= minUnits && z >= bound
      ? [{ type: type.name, users, difference, z, bound }]
      : [];
  });
}

/** What the newest rollout of each agent that has ended means for its types of task; once for each rollout. */
export async function routeTasks(store: Store, now: number, lead?: Lead): Promise<TaskRouting[]> {
  const made: TaskRouting[] = [];
  const seen = new Set<string>();
  for (const rollout of await listRollouts(store, { limit: 100 })) {
    if (seen.has(rollout.agent) || isOpen(rollout)) continue;
    seen.add(rollout.agent);
    const { settings, startedAt } = rollout;
    if (settings.taskRouting !== 'measured' || settings.outcome === null || startedAt === null) continue;
    if ((await readTaskRouting(store, rollout.agent))?.rollout === rollout.id) continue;
    const routing = await routingAfter(store, rollout, now);
    if (routing === null) continue;
    await store.db.transaction().execute(async (db) => {
      if (lead) await holds(db, lead);
      await putTaskRouting(db, routing);
      const { agent, types } = routing;
      const details = { serving: routing.serving, to: routing.other, types };
      if (types.length > 0)
        await audit(db, { agent, actor: 'pawl', event: 'tasks-routed', subject: rollout.id, details, at: now });
    });
    made.push(routing);
  }
  return made;
}

/** null: what served or serves is none of the two. */
async function routingAfter(store: Store, rollout: Rollout, now: number): Promise<TaskRouting | null> {
  const { agent, id, settings, stepsAt } = rollout;
  const serving = await servingRelease(store, agent);
  const to = serving?.id === rollout.candidate ? 'baseline' : serving?.id === rollout.baseline ? 'candidate' : null;
  if (serving === null || to === null) return null;
  const routing = { agent, rollout: id, serving: serving.id, other: rollout[to], at: now };
  if (to === 'candidate' && !(await onlyOutcomes(store, rollout))) return { ...routing, types: [] };
  const other = (await readRelease(store, { id: routing.other }))!;
  const found = await readCompatibility(store, { agent, release: other.name });
  if (found !== null && !isFit(found)) return { ...routing, types: [] };
  const names = {
    baseline: (await readRelease(store, { id: rollout.baseline }))!.name,
    candidate: (await readRelease(store, { id: rollout.candidate }))!.name,
  };
  const steps: Both<Served>[] = [];
  for (const [step, since] of stepsAt.entries()) {
    if (settings.steps[step]! >= 1) continue;
    const window = { agent, since, until: stepsAt[step + 1] ?? rollout.endedAt ?? now };
    const of = (release: string) =>
      readSaid(store, { ...window, release, origin: settings.origin ?? 'production' }, settings.outcome);
    steps.push({ baseline: await of(names.baseline), candidate: await of(names.candidate) });
  }
  return { ...routing, types: taskRoutes(steps, to, settings) };
}

/** What was found last, and why it is not in force; null: it is. */
export type Standing = { readonly routing: TaskRouting; readonly notInForce: string | null };

export async function standingRouting(store: Store, agent: string): Promise<Standing | null> {
  const routing = await readTaskRouting(store, agent);
  if (routing === null) return null;
  const killed = await readKilled(store, agent);
  if (killed !== null) return { routing, notInForce: `the kill switch is pulled (${killed.by}: ${killed.reason})` };
  if (!(await isFlagOn(store, agent, 'routing')))
    return { routing, notInForce: 'the flag routing is off (`pawl flags on routing`)' };
  const serving = await servingRelease(store, agent);
  return {
    routing,
    notInForce: serving?.id === routing.serving ? null : `${serving?.name ?? 'nothing'} serves now`,
  };
}

/** Whether a candidate that was taken back did nothing worse than succeed less often at something. */
async function onlyOutcomes(store: Store, rollout: Rollout): Promise<boolean> {
  const ended = await readAudit(store, { subject: rollout.id, event: 'rollout-aborted', limit: 1 });
  if (ended.length > 0) return false;
  const { decision } = await look(store, { ...rollout, phase: 'canary' }, rollout.endedAt!);
  return decision.checks.every(({ name, end }) => end !== 'fail' || name === 'outcome' || name === 'slice');
}
