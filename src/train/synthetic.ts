/**
 * Synthetic data as a by-product (T8): attempts that earned a high reward become candidates for a dataset, with everything
 * needed to trace or make them again. Candidates, not data: curate/ applies its gates to them like to anything else, and
 * their origin stays `simulation`, so nobody can take them for what users did.
 */
import { createHash } from 'node:crypto';
import type { Attempt, AttemptSource } from './attempt.ts';

export type Candidate = {
  /** Of the content: the same conversation is the same candidate. */
  readonly id: string;
  readonly origin: 'simulation';
  readonly taskType: string;
  readonly quality: number;
  readonly messages: readonly unknown[];
  readonly lineage: {
    readonly run: string;
    readonly attempt: string;
    readonly task: string;
    readonly seed: number | null;
    /** Version of the weights that wrote it. */
    readonly version: number;
  };
};

/**
 * The same source, handing the candidates among what it plays to `keep`. After a resume some come again, under the same id.
 */
export function keepingCandidates(
  source: AttemptSource,
  from: { readonly run: string },
  keep: (candidates: readonly Candidate[]) => void,
): AttemptSource {
  return {
    tasks: source.tasks,
    async play(request) {
      const groups = await source.play(request);
      keep(candidatesFrom(groups.flat(), from));
      return groups;
    },
  };
}

/** The best first; one per conversation, at most `perTask` per task, so that an easy task does not fill the dataset. */
export function candidatesFrom(
  attempts: readonly Attempt[],
  from: { readonly run: string },
  options: { readonly minReward?: number; readonly perTask?: number } = {},
): Candidate[] {
  const { minReward = 0.9, perTask = 1 } = options;
  const seen = new Set<string>();
  const taken = new Map<string, number>();
  const out: Candidate[] = [];
  for (const attempt of [...attempts].sort((a, b) => b.reward - a.reward)) {
    if (!(attempt.reward > minReward) || !attempt.messages) continue;
    const id = createHash('sha256').update(JSON.stringify(attempt.messages)).digest('hex').slice(0, 32);
    const sofar = taken.get(attempt.task) ?? 0;
    if (seen.has(id) || sofar >= perTask) continue;
    seen.add(id);
    taken.set(attempt.task, sofar + 1);
    out.push({
      id,
      origin: 'simulation',
      taskType: attempt.taskType,
      quality: attempt.reward,
      messages: attempt.messages,
      lineage: {
        run: from.run,
        attempt: attempt.id,
        task: attempt.task,
        seed: attempt.seed ?? null,
        version: attempt.version,
      },
    });
  }
  return out;
}
