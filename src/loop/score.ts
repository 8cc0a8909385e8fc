/** Score: every trajectory of the window under the agent's reward. Those that have their score already are left alone. */
import { openJudge } from '../score/ask-open.ts';
import { openRewardModels } from '../score/reward-models.ts';
import { scoreWindow } from '../score/run.ts';
import { saveLoop } from '../store/loops.ts';
import type { Evidence } from './next-step.ts';
import type { LoopParts, Step } from './parts.ts';

type Scoring = Pick<LoopParts, 'store' | 'artifacts' | 'agent' | 'engine'>;

export const score: Step = async (parts, { state }) => {
  const { since, until } = state.collect!;
  const { trajectories, unmeasured, tooLong } = await scoreBetween(parts, since, until);
  return { score: { trajectories, scored: trajectories - unmeasured - tooLong } };
};

/** Outside a turn: enough has come, and whether it is enough to begin one is up to what can be scored. */
export async function scoreNew(parts: Scoring, { firstAt }: Evidence): Promise<void> {
  const now = Date.now();
  await scoreBetween(parts, firstAt ?? now, now);
  await saveLoop(parts.store, parts.agent.name, now, { lookedAt: now });
}

const scoreBetween = ({ store, artifacts, agent, engine }: Scoring, since: number, until: number) =>
  scoreWindow(store, {
    ...{ agent: agent.name, spec: agent.reward, origin: agent.curate.on, now: new Date() },
    ...{ since: new Date(since), until: new Date(until) },
    services: {
      judge: openJudge(store, agent),
      rewardModels: openRewardModels({ store, artifacts }, async (work) => work(await engine())),
    },
  });
