/**
 * The kill switch of an agent: one release answers everybody, at once, and nothing else may begin until a person lets it. An open
 * rollout is aborted, pins do not count. All of it is one transaction, announced to every gateway as it commits; gateways that are
 * cut off from the database keep the routes they know, and follow when they are back.
 *
 * Which release: the one that is named; else the baseline of the open rollout; else what the present one was promoted over; else the
 * first that ever served. What was merely served by hand in between does not count: mostly that was a way back.
 */
import { ConflictError, NotFoundError } from '../errors.ts';
import { readAudit } from '../store/audit.ts';
import type { Store } from '../store/postgres.ts';
import { type Killed, readKilled, readRelease, servingRelease, setKilled, setRoute } from '../store/releases.ts';
import { listRollouts, updateRollout } from '../store/rollouts.ts';
import { audit } from './audit.ts';
import type { Release } from './release.ts';
import { moved } from './rollout.ts';

export type Kill = {
  readonly agent: string;
  /** What is to answer; without it, see above. */
  readonly to?: Release | undefined;
  readonly actor: string;
  readonly reason: string;
};

export type Pulled = { readonly release: Release; readonly before: Release; readonly aborted: string | null };

export async function pullKillSwitch(store: Store, { agent, to, actor, reason }: Kill, now: number): Promise<Pulled> {
  for (;;) {
    const before = await servingRelease(store, agent);
    if (before === null)
      throw new ConflictError(`No release serves agent ${agent}, so there is nothing to fall back to.`);
    const [open] = await listRollouts(store, { agent, open: true, limit: 1 });
    const release = to ?? (open === undefined ? await earlier(store, before) : before);
    const done = await store.db.transaction().execute(async (transaction) => {
      if (open !== undefined) {
        const ended = moved(open, 'abort', [`Kill switch: ${reason}`], now);
        if (!(await updateRollout(transaction, ended))) return false; // it has moved meanwhile
      }
      await setRoute(transaction, { agent, release: release.id, at: now });
      await setKilled(transaction, agent, { by: actor, reason, at: now });
      const details = { release: release.name, before: before.name, rollout: open?.id ?? null, reason };
      await audit(transaction, { agent, actor, event: 'kill-switch-pulled', subject: release.id, details, at: now });
      if (open !== undefined)
        await audit(transaction, {
          ...{ agent, actor, event: 'rollout-aborted', subject: open.id, at: now },
          details: { phase: 'rolled-back', weight: 0, reasons: [`Kill switch: ${reason}`] },
        });
      return true;
    });
    if (done) return { release, before, aborted: open?.id ?? null };
  }
}

/** The present one where the records know no other. */
async function earlier(store: Store, present: Release): Promise<Release> {
  const [promotion] = await listRollouts(store, { candidate: present.id, phase: 'promoted', limit: 1 });
  const first = async () =>
    (await readAudit(store, { agent: present.agent, event: 'release-served', oldestFirst: true, limit: 1 }))[0]
      ?.subject;
  const id = promotion?.baseline ?? (await first());
  return (id === undefined ? null : await readRelease(store, { id })) ?? present;
}

/** Lets things happen again; what answers stays. */
export async function releaseKillSwitch(store: Store, { agent, actor, reason }: Kill, now: number): Promise<Killed> {
  const killed = await readKilled(store, agent);
  if (killed === null) throw new NotFoundError(`The kill switch of agent ${agent} is not pulled.`);
  await store.db.transaction().execute(async (transaction) => {
    await setKilled(transaction, agent, null);
    const details = { reason, pulledBy: killed.by };
    await audit(transaction, { agent, actor, event: 'kill-switch-released', subject: agent, details, at: now });
  });
  return killed;
}

/** In a transaction that has written to the audit log: nobody pulls the switch until it is done. */
export async function refuseWhileKilled(db: Store['db'], agent: string): Promise<void> {
  const killed = await readKilled({ db }, agent);
  if (killed !== null)
    throw new ConflictError(
      `The kill switch of agent ${agent} is pulled (${killed.by}: ${killed.reason}); \`pawl kill ${agent} --undo\` lets rollouts begin again.`,
    );
}
