/**
 * Moves rollouts: reads, measures, decides (decide.ts), and writes the move, its audit row and the new route in one
 * transaction, which also announces it to the gateways. Killed at any point, the next call finds either nothing done or
 * everything; called twice at once, one writes and the other finds that it is too late.
 */
import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import { ConflictError, NotFoundError } from '../errors.ts';
import { readDataset } from '../store/datasets.ts';
import { isFlagOn } from '../store/flags.ts';
import { holds, type Lead } from '../store/lead.ts';
import type { Store } from '../store/postgres.ts';
import {
  insertRelease,
  readRelease,
  routedAliases,
  servingRelease,
  setFirstRoute,
  setRoute,
} from '../store/releases.ts';
import { latestReport } from '../store/reports.ts';
import { insertRollout, listRollouts, readRollout, updateRollout } from '../store/rollouts.ts';
import { postgresRunStore } from '../store/runs.ts';
import { type AdmissionReport, admit } from './admit.ts';
import { audit } from './audit.ts';
import { judge, type Measurements, shadowPart } from './checks/all.ts';
import type { Finding } from './checks/check.ts';
import { driftFound } from './checks/drift.ts';
import { type Decision, decide, type Found } from './decide.ts';
import type { Fit } from './fit.ts';
import { refuseWhileKilled } from './kill.ts';
import { type Measured, measureRollout, measureShadow } from './measure.ts';
import { type Look, promotionStanding, type Standing } from './promotion.ts';
import { makeRelease, type NewRelease, type Release } from './release.ts';
import {
  beginning,
  isShadowing,
  type MeasuredOrigin,
  type Move,
  moved,
  type PersonMove,
  type Rollout,
  rolloutSettings,
  weightOf,
} from './rollout.ts';
import { judgeShadow } from './shadow.ts';

/** Whether what it came from has to stay inside. */
export async function cameFromInternal(
  store: Store,
  { run, dataset }: Pick<NewRelease, 'run' | 'dataset'>,
): Promise<boolean> {
  const trained = run == null ? null : await postgresRunStore(store).get(run);
  const learned = dataset == null ? null : await readDataset(store, { id: dataset });
  return trained?.internal === true || learned?.internal === true;
}

/** Registers a release. The same content again gives the same release and no second audit row. */
export async function createRelease(store: Store, given: NewRelease, actor: string, now: number): Promise<Release> {
  const internal = given.internal === true || (await cameFromInternal(store, given));
  const release = makeRelease({ ...given, internal }, now);
  await store.db.transaction().execute(async (transaction) => {
    if (!(await insertRelease(transaction, release))) return;
    const { id, agent, name, upstream, model, checkpoint, prompt, thinking, parent, run, report, dataset } = release;
    const details = {
      ...(internal && { internal }),
      name,
      upstream,
      model,
      checkpoint,
      thinking,
      parent,
      run,
      report,
      dataset,
      hasPrompt: prompt !== null,
    };
    await audit(transaction, { agent, actor, event: 'release-created', subject: id, details, at: now });
  });
  return (await readRelease(store, { id: release.id }))!;
}

export type Serve = {
  /** Why; stands in the audit log. */
  readonly reason?: string;
  /** Model names, besides the agent's own, under which clients get it; without this they stay as they are. */
  readonly aliases?: readonly string[];
  /** Only where nothing serves the agent; what somebody else let in meanwhile stays. */
  readonly isFirst?: boolean;
};

/**
 * Lets a release answer all of an agent's traffic without a rollout: the first one, and the way back after a promotion.
 * False if it does so already, under the same names.
 */
export async function serveRelease(
  store: Store,
  release: Release,
  actor: string,
  now: number,
  { reason, aliases, isFirst = false }: Serve = {},
): Promise<boolean> {
  const { agent, id, name } = release;
  return store.db.transaction().execute(async (transaction) => {
    const before = await servingRelease({ db: transaction }, agent);
    const names = await routedAliases({ db: transaction }, agent);
    const given = aliases === undefined ? {} : { aliases: [...new Set(aliases)] };
    if (!isFirst) await setRoute(transaction, { agent, release: id, at: now, ...given });
    else if (!(await setFirstRoute(transaction, { agent, release: id, at: now }))) return false;
    const isSame = before?.id === id;
    if (isSame && (given.aliases === undefined || isDeepStrictEqual(given.aliases, names))) return false;
    const why = reason === undefined ? {} : { reason };
    const details = { name, before: before?.name ?? null, ...why, ...given };
    await audit(transaction, { agent, actor, event: 'release-served', subject: id, details, at: now });
    if (isSame) return true;
    // Writers of the audit log take turns, so from here on no rollout begins until this is done or undone.
    const [open] = await listRollouts({ db: transaction }, { agent, open: true, limit: 1 });
    if (open)
      throw new ConflictError(
        `Rollout ${open.id} of agent ${agent} has not ended; end it first, with \`pawl rollouts abort ${open.id}\` or \`pawl rollouts promote ${open.id}\`.`,
      );
    return true;
  });
}

export type StartRollout = {
  /** The same id again finds the rollout that is there. */
  readonly id: string;
  readonly agent: string;
  readonly candidate: Release;
  readonly report: AdmissionReport | null;
  readonly settings?: z.input<typeof rolloutSettings>;
  /** The traffic it is judged by: the kind the agent learns from. */
  readonly origin?: MeasuredOrigin; // production
  /** Why a person wants it whatever the report says; stands in the audit log. */
  readonly forced?: string;
  readonly actor: string;
  /** Asked of the candidate once it may begin otherwise (fit.ts). */
  readonly fit?: Fit;
  /** Of whoever starts it without being told to: it is started only while this stands. */
  readonly lead?: Lead;
};

/** From the release that serves now to the candidate; whether it may, and whether it waits for a person, says admit.ts. */
export async function startRollout(store: Store, start: StartRollout, now: number): Promise<Rollout> {
  const { id, agent, candidate, report, origin = 'production', actor, forced = null, lead } = start;
  const settings = { ...rolloutSettings.parse(start.settings ?? {}), origin };
  const existing = await readRollout(store, id);
  if (existing?.candidate === candidate.id) return existing;
  if (existing) throw new ConflictError(`There is a rollout ${id} of another release; choose another id.`);
  const baseline = await servingRelease(store, agent);
  if (baseline === null)
    throw new ConflictError(
      `Agent ${agent} has no release that serves yet, so there is nothing to roll out against; let the first one serve with \`pawl releases serve ${candidate.name} --agent ${agent}\`.`,
    );
  if (candidate.agent !== agent)
    throw new ConflictError(`Release ${candidate.name} is of agent ${candidate.agent}, not of ${agent}.`);
  if (baseline.id === candidate.id)
    throw new ConflictError(`Release ${candidate.name} serves all traffic of ${agent} already.`);
  const { phase, reason } = admit({
    ...{ agent, candidate: candidate.name, baseline: baseline.name, report, settings, forced },
  });
  if (phase === 'refused') throw new ConflictError(reason);
  await start.fit?.(candidate);
  const rollout: Rollout = {
    id,
    agent,
    baseline: baseline.id,
    candidate: candidate.id,
    report: report?.id ?? null,
    ...(phase === 'canary'
      ? beginning(settings, now)
      : { phase, step: 0, startedAt: null, stepSince: null, stepsAt: [] }),
    settings,
    reasons: [reason],
    looks: [],
    version: 1,
    createdAt: now,
    endedAt: null,
  };
  await store.db.transaction().execute(async (transaction) => {
    if (lead) await holds(transaction, lead);
    if (!(await insertRollout(transaction, rollout))) return;
    const details = {
      baseline: baseline.name,
      candidate: candidate.name,
      report: report?.id ?? null,
      verdict: report?.verdict ?? 'unmeasured',
      forced: forced !== null,
      ...(forced === null ? {} : { reason: forced }),
      phase: rollout.phase,
      weight: weightOf(rollout),
      ...(lead ? leaderOf(lead) : {}),
    };
    await audit(transaction, { agent, actor, event: 'rollout-started', subject: id, details, at: now });
    await refuseWhileKilled(transaction, agent);
    // As in `serveRelease`: what serves now goes on serving until this is done or undone.
    if ((await servingRelease({ db: transaction }, agent))?.id !== baseline.id)
      throw new ConflictError(`Release ${baseline.name} of agent ${agent} no longer serves; start the rollout again.`);
  });
  return (await readRollout(store, id))!;
}

const eventOf: Record<Move, string> = {
  approve: 'rollout-approved',
  advance: 'rollout-advanced',
  promote: 'rollout-promoted',
  pause: 'rollout-paused',
  hold: 'rollout-held',
  rollback: 'rollout-rolled-back',
  abort: 'rollout-aborted',
  look: 'rollout-looked',
};

/** Who moved it, where no person did: one rollout is moved by one leader at a time, and the log shows it. */
const leaderOf = ({ process, term }: Lead) => ({ leader: { process, term } });

/** null: somebody else has moved it meanwhile. */
async function carryOut(
  store: Store,
  rollout: Rollout,
  move: Move,
  reasons: readonly string[],
  by: string | Lead,
  now: number,
  look: Look | null = null,
): Promise<Rollout | null> {
  const lead = typeof by === 'string' ? null : by;
  const actor = typeof by === 'string' ? by : 'pawl';
  const next = moved(rollout, move, reasons, now, look);
  return store.db.transaction().execute(async (transaction) => {
    if (lead !== null) await holds(transaction, lead);
    if (!(await updateRollout(transaction, next))) return null;
    if (next.phase === 'promoted') await setRoute(transaction, { agent: next.agent, release: next.candidate, at: now });
    const details = { phase: next.phase, weight: weightOf(next), reasons, ...(lead === null ? {} : leaderOf(lead)) };
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
  move: PersonMove,
  actor: string,
  reason: string,
  now: number,
): Promise<Rollout> {
  for (;;) {
    const rollout = await readRollout(store, id);
    if (rollout === null)
      throw new NotFoundError(`There is no rollout ${id}; \`pawl rollouts list\` shows those that exist.`);
    const next = await carryOut(store, rollout, move, [reason], actor, now);
    if (next) return next;
  }
}

export type Reconciled = {
  readonly rollout: Rollout;
  readonly decision: Decision;
  readonly measurements: Measurements;
};

/** One look at every open rollout, or at one agent's, on the traffic that came. Call it every few seconds. */
export async function reconcile(
  store: Store,
  { now, agent, lead }: { readonly now: number; readonly agent?: string; readonly lead?: Lead },
): Promise<Reconciled[]> {
  const results: Reconciled[] = [];
  for (const rollout of await listRollouts(store, { agent, open: true })) {
    const { measurements, decision: found } = await look(store, rollout, now);
    const decision = await unlessOff(store, rollout.agent, found);
    const next =
      decision.kind === 'hold'
        ? rollout
        : await carryOut(store, rollout, decision.kind, decision.reasons, lead ?? 'pawl', now, decision.look);
    if (next) results.push({ rollout: next, decision, measurements });
  }
  return results;
}

/** While the flag is off nothing goes forward by itself. */
async function unlessOff(store: Store, agent: string, decision: Decision): Promise<Decision> {
  if (decision.kind !== 'advance' && decision.kind !== 'promote') return decision;
  if (await isFlagOn(store, agent, 'rollouts')) return decision;
  const reason = `It could ${decision.kind}; the flag rollouts of agent ${agent} is off (\`pawl flags on rollouts\`).`;
  return { ...decision, kind: 'hold', reasons: [reason] };
}

const notYet: Standing = { kind: 'unasked', reason: 'No user has it yet.', look: null };

/** What is measured of a rollout now and what would follow. Moves nothing. */
export async function look(
  store: Store,
  rollout: Rollout,
  now: number,
): Promise<Pick<Reconciled, 'measurements' | 'decision'>> {
  const { settings, looks, step } = rollout;
  const drifted = await lookAtDrift(store, rollout);
  if (isShadowing(rollout)) {
    const { shadow, baselineErrors } = await measureShadow(store, rollout, now);
    const compared = judgeShadow(shadow, baselineErrors, settings, settings.alpha * shadowPart(settings));
    const checks = [...compared, ...drifted];
    return { measurements: { shadow }, decision: decide(rollout, { checks, promotion: notYet }, now) };
  }
  const found = (checks: Measurements, steps: Measured['steps']): Found => ({
    checks: rollout.startedAt === null ? [] : [...judge(checks, settings, step), ...drifted],
    promotion: promotionStanding(steps, looks, settings, now),
  });
  if (rollout.startedAt === null) return { measurements: {}, decision: decide(rollout, found({}, []), now) };
  const { checks, steps } = await measureRollout(store, rollout, now);
  return { measurements: checks, decision: decide(rollout, found(checks, steps), now) };
}

async function lookAtDrift(store: Store, { agent, candidate, createdAt }: Rollout): Promise<Finding[]> {
  const { name } = (await readRelease(store, { id: candidate }))!;
  return driftFound(await latestReport(store, { agent, candidate: name }), createdAt);
}
