/**
 * What a trained reward model says of the conversation. The agent's file names model and version (`pawl reward train` prints both), so
 * that another model is another reward; one that its gate refused, or that is not there, fails the part.
 */
import type { Turn } from '../collect/turn.ts';
import { formVersion } from './reward-model-form.ts';
import { type Scorer, unmeasured } from './scorer.ts';

/** Lent by the runtime. */
export type RewardModels = {
  /** 0–1. Throws a sentence when the model cannot be asked. */
  value(asked: {
    readonly agent: string;
    readonly name: string;
    readonly version: string;
    readonly turns: readonly Turn[];
    readonly signal: AbortSignal;
  }): Promise<number>;
};

export function rewardModel(name: string, version: string): Scorer {
  if (!/^[a-z0-9][a-z0-9_.-]{0,62}$/.test(name)) throw new Error(`'${name}' cannot name a reward model.`);
  if (!/^[0-9a-f]{16}$/.test(version))
    throw new Error(
      `'${version}' is no version of a reward model: sixteen hexadecimal digits, as \`pawl reward models\` lists them.`,
    );
  return {
    name: `reward model ${name}`,
    version: JSON.stringify(['reward-model', formVersion, name, version]),
    inProcess: true,
    timeoutSeconds: 600, // a page of conversations waits for the same engine
    async score({ trajectory: { agent }, turns }, { signal, rewardModels }) {
      if (!turns.some(({ choices }) => choices.length > 0)) return unmeasured('there is no answer');
      if (rewardModels === undefined) throw new Error('no engine was lent to whoever scores here');
      const value = await rewardModels.value({ agent, name, version, turns, signal });
      return { value, reason: `reward model ${name} ${version}`, turns: new Map() };
    },
  };
}
