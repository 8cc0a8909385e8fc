/** Scoring as a worker's job: for each agent what is new, and what got new evidence, as often as its file says. */
import type { Agent } from '../agent.ts';
import { openJudge } from '../score/ask-open.ts';
import { lendEngine, openRewardModels } from '../score/reward-models.ts';
import { scoreWindow } from '../score/run.ts';
import { lookAtTools } from '../score/tool-adoption.ts';
import type { Job, JobParts } from './jobs.ts';

const minute = 60_000;
const day = 86_400_000;

async function scoreNow(agent: Agent, { store, artifacts, config, log, signal }: JobParts): Promise<void> {
  const now = new Date();
  const {
    trajectories: _,
    unchanged: __,
    ...counts
  } = await scoreWindow(store, {
    ...{ agent: agent.name, spec: agent.reward, origin: agent.curate.on, now, signal },
    ...{ since: new Date(+now - agent.score.lookBackDays * day), until: now },
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
    return [{ name: `score ${agent.name}`, everyMs: everyMinutes * minute, run: (parts) => scoreNow(agent, parts) }];
  });
