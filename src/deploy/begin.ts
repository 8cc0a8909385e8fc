/**
 * A rollout as somebody asks for one, by command or API: the candidate by its name, the report that speaks for it, and the
 * agent's own settings.
 */
import { NotFoundError } from '../errors.ts';
import type { Store } from '../store/postgres.ts';
import { servingRelease } from '../store/releases.ts';
import { latestReport, readReport } from '../store/reports.ts';
import { readRollout } from '../store/rollouts.ts';
import type { AdmissionReport } from './admit.ts';
import { startRollout } from './reconcile.ts';
import { findRelease } from './register.ts';
import type { Release } from './release.ts';
import type { MeasuredOrigin, Rollout, RolloutSettings } from './rollout.ts';

/** What of an agent's definition a rollout goes by. */
export type RolledOut = {
  readonly name: string;
  readonly deploy: RolloutSettings;
  readonly curate: { readonly on: MeasuredOrigin };
};

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

export async function beginRollout(store: Store, agent: RolledOut, asked: RolloutAsked, now: number): Promise<Rollout> {
  const { actor, forced } = asked;
  const candidate = await findRelease(store, agent.name, asked.candidate);
  const report = await reportOn(store, candidate, asked.report);
  const id = asked.id ?? (await freeId(store, candidate.name));
  return startRollout(
    store,
    {
      ...{ id, agent: agent.name, candidate, report, settings: agent.deploy, origin: agent.curate.on, actor },
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

/** A release may be rolled out again: v2-r1, v2-r2, … */
async function freeId(store: Store, candidate: string): Promise<string> {
  for (let n = 1; ; n++) {
    const id = `${candidate}-r${n}`;
    if ((await readRollout(store, id)) === null) return id;
  }
}
