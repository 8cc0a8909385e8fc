/**
 * A rollout as somebody asks for one, by command or API: the candidate by its name, the report that speaks for it, and the
 * agent's own settings.
 */
import { ConflictError, NotFoundError } from '../errors.ts';
import type { Store } from '../store/postgres.ts';
import { readRelease, servingRelease } from '../store/releases.ts';
import { latestReport, readReport } from '../store/reports.ts';
import { listRollouts, readRollout } from '../store/rollouts.ts';
import type { AdmissionReport } from './admit.ts';
import type { Fit, FitAgent } from './fit.ts';
import { moveRollout, startRollout } from './reconcile.ts';
import { findRelease } from './register.ts';
import type { Release } from './release.ts';
import { isOpen, type PersonMove, type Rollout, type RolloutSettings } from './rollout.ts';

/** What of an agent's definition a rollout goes by. */
export type RolledOut = FitAgent & { readonly deploy: RolloutSettings };

export type RolloutAsked = {
  /** Name of the release. */
  readonly candidate: string;
  /** Id; without it the newest that compares the candidate with what serves. */
  readonly report?: string | undefined;
  /** Why, where a person wants it whatever the report says. */
  readonly forced?: string | undefined;
  readonly id?: string | undefined;
  readonly actor: string;
};

export async function beginRollout(
  store: Store,
  agent: RolledOut,
  asked: RolloutAsked,
  fit: Fit,
  now: number,
): Promise<Rollout> {
  const { actor, forced } = asked;
  const candidate = await findRelease(store, agent.name, asked.candidate);
  const report = await reportOn(store, candidate, asked.report);
  const id = asked.id ?? (await freeId(store, candidate.name));
  return startRollout(
    store,
    {
      ...{ id, agent: agent.name, candidate, report, settings: agent.deploy, origin: agent.curate.on, actor, fit },
      ...(forced === undefined ? {} : { forced }),
    },
    now,
  );
}

async function reportOn(store: Store, { agent, name }: Release, given?: string): Promise<AdmissionReport | null> {
  if (given !== undefined) {
    const report = await readReport(store, given);
    if (report?.agent === agent) return report;
    throw new NotFoundError(
      `Agent ${agent} has no report ${given}; \`pawl reports list --agent ${agent}\` shows those that exist.`,
    );
  }
  const baseline = await servingRelease(store, agent);
  return baseline === null ? null : latestReport(store, { agent, baseline: baseline.name, candidate: name });
}

export type PersonSays = { readonly move: PersonMove; readonly actor: string; readonly reason: string };

/**
 * A person's move of a rollout that is there; or their word on a report of which none has begun, which is approved in one step: its
 * rollout begins, and does not wait.
 */
export async function sayOf(
  store: Store,
  agents: readonly RolledOut[],
  id: string,
  { move, actor, reason }: PersonSays,
  fitOf: (agent: RolledOut) => Fit,
  now: number,
): Promise<Rollout> {
  const found = await readRollout(store, id);
  const begun = found === null && move === 'approve' ? await begunOn(store, agents, id, actor, fitOf, now) : null;
  const rollout = found ?? begun?.rollout;
  if (rollout === undefined)
    throw new NotFoundError(`There is no rollout ${id}; \`pawl rollouts list\` shows those that exist.`);
  const agent = agents.find(({ name }) => name === rollout.agent);
  const waits = rollout.phase === 'waiting';
  if (begun !== null && !waits) return rollout;
  // Until here nobody has had the candidate, and much may have changed since it was made.
  const begins = waits && (move === 'approve' || move === 'promote');
  if (begins && begun?.isNew !== true && agent !== undefined)
    await fitOf(agent)((await readRelease(store, { id: rollout.candidate }))!);
  return moveRollout(store, rollout.id, move, actor, reason, now);
}

/** The rollout of a report: the one that waits for it, or a new one. null: it is no report. */
async function begunOn(
  store: Store,
  agents: readonly RolledOut[],
  id: string,
  actor: string,
  fitOf: (agent: RolledOut) => Fit,
  now: number,
): Promise<{ readonly rollout: Rollout; readonly isNew: boolean } | null> {
  const report = await readReport(store, id);
  const agent = agents.find(({ name }) => name === report?.agent);
  if (report === null || agent === undefined) return null;
  const candidate = await findRelease(store, agent.name, report.candidate);
  const before = (await listRollouts(store, { agent: agent.name, candidate: candidate.id })).find(
    (one) => one.report === id,
  );
  if (before !== undefined && isOpen(before)) return { rollout: before, isNew: false };
  if (before !== undefined)
    throw new ConflictError(
      `Report ${id} was decided on already: rollout ${before.id} ended ${before.phase}. \`pawl rollouts start --agent ${agent.name} --candidate ${candidate.name}\` begins another.`,
    );
  const asked = { candidate: candidate.name, report: id, actor };
  return { rollout: await beginRollout(store, agent, asked, fitOf(agent), now), isNew: true };
}

/** A release may be rolled out again: v2-r1, v2-r2, … */
async function freeId(store: Store, candidate: string): Promise<string> {
  for (let n = 1; ; n++) {
    const id = `${candidate}-r${n}`;
    if ((await readRollout(store, id)) === null) return id;
  }
}
