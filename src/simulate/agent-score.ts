/** What an agent did in an episode as scorers read it: the records a gateway would have made, of origin `simulation`. */
import type { Signal } from '../collect/signal.ts';
import type { Turn } from '../collect/turn.ts';
import { unrecordedTurn } from '../collect/unrecorded-turn.ts';
import { uuidv7 } from '../collect/uuid.ts';
import type { ScorerInput } from '../score/scorer.ts';
import { type RewardSpec, scoreOf } from '../score/weighted.ts';
import type { AgentView } from './agent-environment.ts';
import type { Grade } from './environment.ts';

/** Throws where no scorer could tell: an episode that nobody can judge teaches nothing. */
export async function scored(spec: RewardSpec, agent: string, view: AgentView<unknown>): Promise<Grade> {
  const at = Date.now();
  const { total, parts } = await scoreOf(spec, inputOf(agent, view, at), { day: '', at });
  const reasons = Object.entries(parts).map(([name, { reason }]) => `${name}: ${reason}`);
  if (total === null) throw new Error(`no scorer could tell (${reasons.join('; ')})`);
  return {
    reward: total,
    parts: Object.fromEntries(
      Object.entries(parts).flatMap(([name, { value }]) => (value === null ? [] : [[name, value]])),
    ),
    reasons: total < 1 ? reasons : [],
  };
}

function inputOf(agent: string, { task, calls, outcomes }: AgentView<unknown>, at: number): ScorerInput {
  const trajectory = task.id;
  const turns = calls.map(
    ({ messages, tools, answer, finish }, i): Turn =>
      unrecordedTurn({
        ...{ id: uuidv7(at + i), trajectory, agent, origin: 'simulation', startedAt: at + i },
        request: { model: agent, messages, ...(tools.length === 0 ? {} : { tools }) },
        choices: [{ index: 0, message: { ...answer }, finishReason: finish }],
      }),
  );
  const signals = [...outcomes].map(
    ([name, value]): Signal => ({
      id: uuidv7(at),
      identity: name,
      agent,
      target: { kind: 'trajectory', id: trajectory },
      kind: 'outcome',
      name,
      value,
      unit: null,
      user: null,
      key: null,
      comment: null,
      correction: null,
      at,
      receivedAt: at,
    }),
  );
  return {
    trajectory: {
      id: trajectory,
      agent,
      user: null,
      origin: 'simulation',
      consent: 'unknown',
      startedAt: new Date(at),
      endedAt: new Date(at + turns.length),
      turns: turns.length,
      errors: 0,
      promptTokens: 0,
      completionTokens: 0,
      latencyMs: 0,
      release: '',
    },
    turns,
    signals,
  };
}
