/**
 * Moves rollouts: reads, measures, decides (decide.ts), and writes the move, its audit row and the new route in one
 * transaction, which also announces it to the gateways. Killed at any point, the next call finds either nothing done or
 * everything; called twice at once, one writes and the other finds that it is too late.
 */

import type { z } from 'zod';
import type { Origin } from '../collect/trajectory.ts';
import type { Report } from '../evaluate/report.ts';
import type { Store } from '../store/postgres.ts';
import { insertRelease, readRelease, servingRelease, setRoute } from '../store/releases.ts';
import { insertRollout, listRollouts, readRollout, updateRollout } from '../store/rollouts.ts';
import { audit } from './audit.ts';
import { type Decision, decide, type Measurements } from './decide.ts';
import { measureBoth, type Window } from './measure.ts';
import { makeRelease, type NewRelease, type Release } from './release.ts';
import { isOpen, type Move, moved, type Rollout, rolloutSettings, weightOf } from './rollout.ts';

/** Registers a release. The same content again gives the same release and no second audit row. */
export async function createRelease(store: Store, given: NewRelease, actor: string, now: number): Promise<Release> {
  const release = makeRelease(given, now);
  await store.db.transaction().execute(async (transaction) => {
    if (!(await insertRelease(transaction, release))) return;
    const { id, agent, name, upstream, model, checkpoint, run, report, dataset } = release;
    const details = { name, upstream, model, checkpoint, run, report, dataset };
    await audit(transaction, { agent, actor, event: 'release-created', subject: id, details, at: now });
  });
  return (await readRelease(store, { id: release.id }))!;
}

/** Lets a release answer all of an agent's traffic without a rollout: for the first one, and for emergencies. */
export async function serveRelease(
  store: Store,
  release: Release,
  actor: string,
  now: number,
  aliases?: readonly string[],
): Promise<void> {
  const { agent, id, name } = release;
  const before = await servingRelease(store, agent);
  if (before?.id === id && aliases === undefined) return;
  const [under] = await listRollouts(store, { agent, open: true, limit: 1 });
  if (under && before?.id !== id)
    throw new Error(
      `Rollout ${under.id} of agent ${agent} has not ended; end it with \`pawl rollouts abort ${under.id}\` first.`,
    );
  await store.db.transaction().execute(async (transaction) => {
    await setRoute(transaction, { agent, release: id, at: now, ...(aliases ? { aliases } : {}) });
    if (before?.id === id) return;
    const details = { name, before: before?.name ?? null };
    await audit(transaction, { agent, actor, event: 'release-served', subject: id, details, at: now });
  });
}

export type StartRollout = {
  /** The same id again finds the rollout that is there. */
  readonly id: string;
  readonly agent: string;
  readonly candidate: Release;
  readonly report: Pick<Report, 'id' | 'verdict' | 'candidate'> | null;
  readonly settings?: z.input<typeof rolloutSettings>;
  /** Starts although the report does not pass; who does so stands in the audit log. */
  readonly force?: boolean;
  readonly actor: string;
};

/**
 * From the release that serves now to the candidate. A report that fails or measured nothing is refused, an inconclusive one
 * waits for a person, one that passes begins at once unless approval is asked for.
 */
export async function startRollout(store: Store, start: StartRollout, now: number): Promise<Rollout> {
  const { id, agent, candidate, report, actor, force = false } = start;
  const settings = rolloutSettings.parse(start.settings ?? {});
  const existing = await readRollout(store, id);
  if (existing) return existing;
  const baseline = await servingRelease(store, agent);
  if (baseline === null)
    throw new Error(`Agent ${agent} has no release that serves yet; there is nothing to roll out against.`);
  if (candidate.agent !== agent)
    throw new Error(`Release ${candidate.name} is of agent ${candidate.agent}, not of ${agent}.`);
  if (baseline.id === candidate.id)
    throw new Error(`Release ${candidate.name} serves all traffic of ${agent} already.`);
  const verdict = report?.verdict ?? 'unmeasured';
  if (!force && (verdict === 'fail' || verdict === 'unmeasured'))
    throw new Error(
      `Release ${candidate.name} is not rolled out: its evaluation ${report === null ? 'is missing' : `ended with ${verdict}`}.`,
    );
  const waits = !force && (verdict !== 'pass' || settings.approval === 'human');
  const rollout: Rollout = {
    id,
    agent,
    baseline: baseline.id,
    candidate: candidate.id,
    report: report?.id ?? null,
    phase: waits ? 'waiting' : 'canary',
    step: 0,
    settings,
    reasons: [
      waits ? `Waits for approval; its evaluation ended with ${verdict}.` : `Its evaluation ended with ${verdict}.`,
    ],
    version: 1,
    createdAt: now,
    startedAt: waits ? null : now,
    stepSince: waits ? null : now,
    endedAt: null,
  };
  await store.db.transaction().execute(async (transaction) => {
    if (!(await insertRollout(transaction, rollout))) return;
    const details = {
      baseline: baseline.name,
      candidate: candidate.name,
      report: report?.id ?? null,
      verdict,
      forced: force,
      phase: rollout.phase,
      weight: weightOf(rollout),
    };
    await audit(transaction, { agent, actor, event: 'rollout-started', subject: id, details, at: now });
  });
  return (await readRollout(store, id))!;
}

const eventOf: Record<Move, string> = {
  approve: 'rollout-approved',
  advance: 'rollout-advanced',
  promote: 'rollout-promoted',
  pause: 'rollout-paused',
  rollback: 'rollout-rolled-back',
  abort: 'rollout-aborted',
};

/** null: somebody else has moved it meanwhile. */
async function carryOut(
  store: Store,
  rollout: Rollout,
  move: Move,
  reasons: readonly string[],
  actor: string,
  now: number,
): Promise<Rollout | null> {
  const next = moved(rollout, move, reasons, now);
  return store.db.transaction().execute(async (transaction) => {
    if (!(await updateRollout(transaction, next))) return null;
    if (next.phase === 'promoted') await setRoute(transaction, { agent: next.agent, release: next.candidate, at: now });
    const details = { phase: next.phase, weight: weightOf(next), reasons };
    await audit(transaction, {
      ...{ agent: next.agent, actor, event: eventOf[move], subject: next.id, details, at: now },
    });
    return next;
  });
}

/** A person's move. `abort` is the kill switch: the gateways hear of it at once. */
export async function moveRollout(
  store: Store,
  id: string,
  move: 'approve' | 'abort',
  actor: string,
  reason: string,
  now: number,
): Promise<Rollout> {
  for (;;) {
    const rollout = await readRollout(store, id);
    if (rollout === null) throw new Error(`There is no rollout ${id}; \`pawl rollouts list\` shows those that exist.`);
    const next = await carryOut(store, rollout, move, [reason], actor, now);
    if (next) return next;
  }
}

export type Reconciled = {
  readonly rollout: Rollout;
  readonly decision: Decision;
  readonly measurements: Measurements;
};

/** One look at every open rollout, or at one agent's. Call it every few seconds. */
export async function reconcile(
  store: Store,
  options: { readonly now: number; readonly agent?: string; readonly origin?: Origin },
): Promise<Reconciled[]> {
  const { now, agent, origin } = options;
  const results: Reconciled[] = [];
  for (const rollout of await listRollouts(store, { agent, open: true })) {
    const measurements = await measureRollout(store, rollout, now, origin);
    const decision = decide(rollout, measurements, now);
    const next =
      decision.kind === 'hold' ? rollout : await carryOut(store, rollout, decision.kind, decision.reasons, 'pawl', now);
    if (next) results.push({ rollout: next, decision, measurements });
  }
  return results;
}

/** What decide.ts needs, also for looking on. */
export async function measureRollout(
  store: Store,
  rollout: Rollout,
  now: number,
  origin: Origin = 'production',
): Promise<Measurements> {
  const baseline = (await readRelease(store, { id: rollout.baseline }))!;
  const candidate = (await readRelease(store, { id: rollout.candidate }))!;
  const since = rollout.stepSince ?? now;
  const until = isOpen(rollout) ? now : (rollout.endedAt ?? now);
  const window: Omit<Window, 'release' | 'since'> = {
    agent: rollout.agent,
    until,
    outcome: rollout.settings.outcome,
    origin,
  };
  // At 100% nobody is left to compare with at the same time: the baseline's earlier steps must do.
  const baselineSince = weightOf(rollout) < 1 ? since : (rollout.startedAt ?? since);
  return measureBoth(
    store,
    { ...window, release: baseline.name, since: baselineSince },
    { ...window, release: candidate.name, since },
    rollout.settings,
  );
}
