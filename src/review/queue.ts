/**
 * What waits for a person: conversations to label, evaluations that could not decide, and rollouts that wait for a word. The
 * last two are not stored a second time; each says the command that goes on. Labels are audited like every decision.
 */
import { importLabels } from '../collect/import-labels.ts';
import type { Config } from '../config.ts';
import { audit } from '../deploy/audit.ts';
import { ConflictError, NotFoundError } from '../errors.ts';
import { listLabels } from '../store/labels.ts';
import type { Store } from '../store/postgres.ts';
import { readRelease, servingRelease } from '../store/releases.ts';
import { listReports } from '../store/reports.ts';
import { listReviewItems, type ReviewItem, readScored, saveReviewItems } from '../store/review.ts';
import { listRollouts } from '../store/rollouts.ts';
import { firstStarts } from '../store/trajectories.ts';
import { type Agreement, cohensKappa } from './kappa.ts';
import { pickForReview } from './pick.ts';

type Agent = Config['agents'][number];

export type Waiting = {
  readonly kind: 'report' | 'rollout';
  readonly id: string;
  readonly reasons: readonly string[];
  readonly since: Date;
  /** How a person goes on. */
  readonly command: string;
};

export type Queue = {
  readonly agent: string;
  readonly conversations: readonly ReviewItem[];
  readonly waiting: readonly Waiting[];
  readonly agreement: Agreement;
};

const mostLabels = 10_000;
const mostReports = 20;

export async function readQueue(
  store: Store,
  agent: Agent,
  of: { readonly without?: string | undefined; readonly limit: number },
): Promise<Queue> {
  const { reviewers } = agent.review;
  const labels = await listLabels(store, { agent: agent.name, limit: mostLabels });
  const rated = labels.flatMap(({ target, reviewer, score }) =>
    target.kind === 'trajectory' ? [{ trajectory: target.id, reviewer: reviewer ?? '', score }] : [],
  );
  return {
    agent: agent.name,
    conversations: await listReviewItems(store, { agent: agent.name, reviewers, ...of }),
    waiting: await readWaiting(store, agent.name),
    agreement: cohensKappa(rated),
  };
}

/** Rollouts that wait, and inconclusive reports on releases against what serves, of which none began. */
export async function readWaiting(store: Store, agent: string): Promise<Waiting[]> {
  const rollouts = await listRollouts(store, { agent, open: true });
  const asking = rollouts.filter(({ phase }) => phase === 'waiting' || phase === 'paused');
  const serving = await servingRelease(store, agent);
  const reports = await listReports(store, { agent, limit: mostReports });
  const undecided: Waiting[] = [];
  const seen = new Set<string>();
  for (const { id, candidate, baseline, verdict, reasons, createdAt } of reports) {
    // Only the newest word on a release counts.
    if (seen.has(candidate)) continue;
    seen.add(candidate);
    if (verdict !== 'inconclusive' || baseline !== serving?.name) continue;
    const release = await readRelease(store, { agent, name: candidate });
    if (release === null || (await listRollouts(store, { agent, candidate: release.id, limit: 1 })).length > 0)
      continue;
    const command = `pawl rollouts approve ${id}`;
    undecided.push({ kind: 'report', id, reasons, since: new Date(createdAt), command });
  }
  return [
    ...asking.map(({ id, reasons, createdAt }) => ({
      ...{ kind: 'rollout' as const, id, reasons, since: new Date(createdAt) },
      command: `pawl rollouts approve ${id}`,
    })),
    ...undecided,
  ];
}

/** Picks from a window of scored conversations; those that were picked before stay. Says how many are new. */
export async function pickWindow(
  store: Store,
  agent: Agent,
  window: { readonly since: Date; readonly until: Date },
  now: Date,
): Promise<{ readonly scored: number; readonly picked: number; readonly added: number }> {
  const of = { agent: agent.name, spec: agent.reward.version, origin: agent.curate.on, ...window };
  const scored = await readScored(store, of);
  const picked = pickForReview(agent.name, scored, agent.review.share);
  const added = await saveReviewItems(store, agent.name, picked, now);
  return { scored: scored.length, picked: picked.length, added };
}

export type Said = {
  readonly trajectory: string;
  readonly score: number;
  readonly reviewer: string;
  readonly comment?: string | undefined;
  /** What the answer should have been: it becomes a demonstration and one side of a pair. */
  readonly correction?: string | undefined;
};

/** A reviewer's word on a conversation; a second one of the same reviewer takes the first one's place. */
export async function labelConversation(
  store: Store,
  { agent, secret, now }: { readonly agent: string; readonly secret: string; readonly now: Date },
  { trajectory, score, reviewer, comment, correction }: Said,
): Promise<void> {
  if ((await firstStarts(store, agent, [trajectory])).size === 0)
    throw new NotFoundError(`Agent ${agent} has no conversation ${trajectory}; \`pawl review list\` shows what waits.`);
  const label = {
    ...{ trajectory, score, reviewer },
    ...(comment === undefined ? {} : { comment }),
    ...(correction === undefined ? {} : { correction }),
  };
  const { bad, problems } = await importLabels(store, { agent, secret, now, labels: [label] });
  if (bad > 0) throw new ConflictError(`The label was not taken: ${problems[0]?.reason ?? 'nobody said why'}.`);
  const details = { score, corrected: correction !== undefined };
  await audit(store.db, {
    ...{ agent, actor: reviewer, event: 'conversation-reviewed', subject: trajectory },
    ...{ details, at: now.getTime() },
  });
}
