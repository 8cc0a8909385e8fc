/**
 * A dataset's rows as examples for whoever trains: one per thread. Neutral on purpose: words always, exact tokens where
 * every answer has them. Which of the two a trainer takes is its own business (curate knows no tokenizer); tokens are only
 * right for the model that wrote them. Masks are filled here, and nowhere else (fill.ts): no trainer sees one.
 */
import { isDeepStrictEqual } from 'node:util';
import { fill } from './fill.ts';
import { fingerprint, type Row, type RowMessage, type RowTool, type Thread } from './row.ts';

export type ExactTurn = {
  readonly model: string;
  readonly prompt: readonly number[];
  readonly completion: readonly number[];
  readonly logprobs?: readonly number[];
};

export type CuratedAnswer = {
  /** Index of its message. */
  readonly at: number;
  readonly score: number | null;
  /** '' where there is none. It is in `messages` too only where the agent sent it back. */
  readonly reasoning: string;
};

export type CuratedExample = {
  /** The trajectory, and `#2`, `#3`, … for its further threads. */
  readonly id: string;
  readonly taskType: string;
  /** Score of the whole conversation, 0–1. */
  readonly quality: number;
  /** Up to and with the last answer. */
  readonly messages: readonly RowMessage[];
  readonly tools: readonly RowTool[];
  /** Which messages the agent wrote, what it thought before, and what each was worth; other assistant messages were given. */
  readonly answers: readonly CuratedAnswer[];
  /** One per answer; null when any of them lacks its tokens, or when the words were filled and tokens cannot be. */
  readonly exact: readonly ExactTurn[] | null;
};

const exactOf = ({ answers }: Thread): ExactTurn[] | null => {
  const all = answers.flatMap(({ exact }) => exact ?? []);
  return all.length === answers.length
    ? all.map(({ logprobs, ...rest }) => ({ ...rest, ...(logprobs && { logprobs }) }))
    : null;
};

/**
 * `seed`: the dataset's. The same words are filled the same, whatever their conversation is called: ids carry the time, and a
 * window that was begun anew must teach what the first would have taught.
 */
export function examplesOf(row: Row, seed: number): CuratedExample[] {
  const conversation = fingerprint(row);
  return row.threads.map((thread, i) => {
    const reasoning = thread.answers.map((answer) => answer.reasoning ?? '');
    const seen = { messages: thread.messages, tools: thread.tools, reasoning };
    const { reasoning: thought, ...filled } = fill(seen, seed, conversation);
    const asItWas = isDeepStrictEqual({ ...filled, reasoning: thought }, seen);
    return {
      id: i === 0 ? row.trajectory : `${row.trajectory}#${i + 1}`,
      taskType: row.taskType ?? 'unknown',
      quality: row.score,
      ...filled,
      answers: thread.answers.map(({ at, score }, k) => ({ at, score, reasoning: thought[k]! })),
      exact: asItWas ? exactOf(thread) : null,
    };
  });
}
