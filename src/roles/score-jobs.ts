/** Scoring as a worker's job: for each agent what is new, and what got new evidence, as often as its file says. */
import type { Agent } from '../agent.ts';
import { openJudge } from '../score/ask-open.ts';
import { lendEngine, openRewardModels } from '../score/reward-models.ts';
import { scoreWindow } from '../score/run.ts';
import { lookAtTools } from '../score/tool-adoption.ts';
import { readJobs } from '../store/jobs.ts';
import type { Store } from '../store/postgres.ts';
import type { Job, JobParts } from './jobs.ts';

const minute = 60_000;
const day = 86_400_000;

const nameOf = (agent: Pick<Agent, 'name'>): string => `score ${agent.name}`;

/** Of what was said about older conversations, all that may have come since the last run began; at first, and after a long rest, of the look back. */
async function heardSince(store: Store, agent: Agent, lookBack: Date): Promise<Date> {
  const { endedAt = null } = (await readJobs(store)).get(nameOf(agent)) ?? {};
  return new Date(Math.max(+lookBack, endedAt === null ? 0 : +endedAt - day));
}

async function scoreNow(agent: Agent, { store, artifacts, config, log, signal }: JobParts): Promise<void> {
  const now = new Date();
  const since = new Date(+now - agent.score.lookBackDays * day);
  const {
    trajectories: _,
    unchanged: __,
    ...counts
  } = await scoreWindow(store, {
    ...{ agent: agent.name, spec: agent.reward, origin: agent.curate.on, now, signal },
    ...{ since, until: now, heardSince: await heardSince(store, agent, since) },
    services: {
      judge: openJudge(store, agent),
      rewardModels: openRewardModels({ store, artifacts }, lendEngine(config.engine)),
    },
  });
  await lookAtTools(store, { agent: agent.name, origin: agent.curate.on, now });
  if (counts.scored + counts.rescored > 0) log.info(counts, `scored conversations of ${agent.name} (docs/score.md)`);
}

export const scoreJobs = (agents: readonly Agent[]): Job[] =>
  agents.flatMap((agent): Job[] => {
    const { everyMinutes } = agent.score;
    if (everyMinutes === null) return [];
    return [{ name: nameOf(agent), everyMs: everyMinutes * minute, run: (parts) => scoreNow(agent, parts) }];
  });
