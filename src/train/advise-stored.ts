/** Advice from what is stored: what there is of an agent, which recipe it is enough for and why, or what is missing. Pure. */
import type { PairSource } from '../curate/pair.ts';
import type { EvidenceCounts } from '../store/evidence.ts';
import { counted } from '../terminal.ts';
import { type Advice, adviseRecipe } from './advise.ts';

export type StoredFacts = {
  readonly agent: string;
  readonly stored: EvidenceCounts;
  /** The newest that may still be learned from; null: none was made. */
  readonly dataset: {
    readonly id: string;
    /** Of quality 0.8 or more. */
    readonly examples: number;
    readonly pairs: Readonly<Partial<Record<PairSource, number>>>;
  } | null;
  readonly environment: boolean;
  /** Checkpoint that a run would start from; null: nothing names one. */
  readonly base: string | null;
};

export type StoredAdvice = Advice & {
  /** The command to run next. */
  readonly next: string;
};

export function adviseStored({ agent, stored, dataset, environment, base }: StoredFacts): StoredAdvice {
  const train = `pawl train --agent ${agent}${dataset === null ? '' : ` --dataset ${dataset.id}`}${base === null ? ' --base FOLDER' : ''}`;
  const pairs = Object.values(dataset?.pairs ?? {}).reduce((sum, n) => sum + n, 0);
  const advice = adviseRecipe({ pairs, examples: dataset?.examples ?? 0, environment });
  if (dataset === null && stored.good > 0)
    return {
      recipe: advice.recipe,
      reasons: [
        `${counted(stored.good, 'good conversation')} with consent ${stored.good === 1 ? 'waits' : 'wait'} to be curated; the recipe is decided by what the dataset then holds.`,
        ...advice.reasons,
      ],
      next: `pawl curate run --agent ${agent}`,
    };
  if (advice.recipe !== null)
    return { ...advice, reasons: [...advice.reasons, ...(base === null ? [noBase(agent)] : [])], next: train };
  return { ...advice, reasons: [...advice.reasons, missing(stored)], next: nextOf(agent, stored) };
}

export const noBase = (agent: string): string =>
  `Nothing says which model to train: no release of ${agent} that serves has a checkpoint, and its settings have no train.base.`;

/** What stands between the traffic and a dataset, the first of it. */
function missing({ trajectories, consenting, scored, good }: EvidenceCounts): string {
  if (trajectories === 0) return 'No conversation is recorded yet: send the agent’s traffic through the gateway.';
  if (consenting === 0)
    return `None of ${counted(trajectories, 'conversation')} is of a user who had agreed: record consent before they speak.`;
  if (scored === 0) return 'None has a score yet, or nothing in them could be measured: send outcomes or feedback.';
  if (good === 0) return 'None of those with consent is good enough; lower `curate.minScore`, or collect more.';
  return 'What was curated is not enough; collect more, and votes or corrections for pairs.';
}

function nextOf(agent: string, { trajectories, consenting, scored }: EvidenceCounts): string {
  if (trajectories === 0) return 'pawl serve';
  if (consenting === 0) return `pawl consent give USER --agent ${agent}`;
  return scored === 0 ? `pawl score run --agent ${agent}` : `pawl curate run --agent ${agent}`;
}

/** For people: a line for each count, then the advice and the next command. */
export function adviceLines(
  { agent, stored, dataset }: StoredFacts,
  advice: StoredAdvice,
  about: {
    readonly reward: { readonly version: string };
    readonly curate: { readonly on: string; readonly minScore: number };
    readonly environment?: { readonly name: string } | undefined;
  },
): string[] {
  const line = (count: number, what: string) => `${count.toLocaleString('en-US').padStart(9)}  ${what}`;
  const pairs = Object.entries(dataset?.pairs ?? {});
  return [
    line(stored.trajectories, `conversations of ${agent}, origin ${about.curate.on}`),
    line(stored.consenting, 'of users who had agreed'),
    line(stored.scored, `scored under reward spec ${about.reward.version}`),
    line(stored.good, `agreed and scored ${about.curate.minScore} or more`),
    line(stored.votes, 'votes'),
    line(stored.corrections, 'corrections'),
    ...(dataset === null
      ? []
      : [
          line(dataset.examples, `examples of quality 0.8 or more in ${dataset.id}`),
          ...(pairs.length === 0
            ? [line(0, `pairs in ${dataset.id}`)]
            : pairs.map(([source, n]) => line(n, `pairs from ${source} in ${dataset.id}`))),
        ]),
    `Environment to practise in: ${about.environment?.name ?? 'none'}.`,
    `Recipe: ${advice.recipe ?? 'none yet'}. ${advice.reasons.join(' ')}`,
    `Next: ${advice.next}`,
  ];
}
