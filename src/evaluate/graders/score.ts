/**
 * The agent's own reward, or one part of it by name, says at least `min` of this one exchange. There are no votes and
 * outcomes here, so parts that live on those cannot tell; a part that cannot tell does not reach any minimum.
 */
import { z } from 'zod';
import type { Trajectory } from '../../collect/trajectory.ts';
import type { Turn } from '../../collect/turn.ts';
import type { Score } from '../../score/score.ts';
import type { Services } from '../../score/scorer.ts';
import { contextOf, type RewardSpec, scoreOf } from '../../score/weighted.ts';
import type { Grader } from './grader.ts';

const expected = z.strictObject({ part: z.string().min(1).max(200).optional(), min: z.number().min(0).max(1) });

const inputOf = (turn: Turn) => ({ trajectory: trajectoryOf(turn), turns: [turn], signals: [] });

/** The whole reward of one exchange by itself. */
export const scoreTurn = (reward: RewardSpec, turn: Turn, services: Services = {}): Promise<Score> =>
  scoreOf(reward, inputOf(turn), { day: '2000-01-01', at: turn.startedAt }, services);

export const score: Grader<z.infer<typeof expected>> = {
  expected,
  async grade({ part, min }, { turn, reward, services = {} }) {
    const input = inputOf(turn);
    if (part === undefined) {
      const { total, parts } = await scoreTurn(reward, turn, services);
      const failed = Object.values(parts).find((one) => one.failed);
      if (failed !== undefined) throw new Error(failed.reason);
      return short('The reward', total, min, 'no part of it could tell');
    }
    const found = reward.parts.find(({ name }) => name === part);
    if (found === undefined)
      throw new Error(`The reward has no part ${part}; it has ${reward.parts.map(({ name }) => name).join(', ')}.`);
    const { value, reason } = await found.scorer.score(
      input,
      contextOf(input, services, () => AbortSignal.timeout(60_000)),
    );
    return short(`The reward’s part ${part}`, value, min, reason);
  },
};

function short(what: string, value: number | null, min: number, reason: string): string | null {
  if (value === null) return `${what} could not be measured: ${reason}.`;
  return value >= min ? null : `${what} is ${Number(value.toFixed(3))}, below ${min}: ${reason}.`;
}

const trajectoryOf = (turn: Turn): Trajectory => ({
  id: turn.trajectory,
  agent: turn.agent,
  user: null,
  origin: turn.origin,
  consent: 'unknown',
  startedAt: new Date(turn.startedAt),
  endedAt: new Date(turn.startedAt + turn.latencyMs),
  turns: 1,
  errors: 0,
  promptTokens: turn.promptTokens ?? 0,
  completionTokens: turn.completionTokens ?? 0,
  latencyMs: turn.latencyMs,
  release: turn.release,
});
