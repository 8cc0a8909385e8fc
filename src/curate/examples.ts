/**
 * A dataset's rows and pairs as whoever trains reads them: an example per thread, a pair per pair. Neutral on purpose: words always, exact tokens where
 * every answer has them. Which of the two a trainer takes is its own business (curate knows no tokenizer); tokens are only
 * right for the model that wrote them. Masks are filled here, and nowhere else (fill.ts): no trainer sees one.
 */
import { isDeepStrictEqual } from 'node:util';
import { fill } from './fill.ts';
import type { PairRow, PairSource } from './pair.ts';
import { type AssistantMessage, fingerprint, type Row, type RowMessage, type RowTool, type Thread } from './row.ts';

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

export type CuratedPair = {
  readonly id: string;
  readonly source: PairSource;
  /** Of all pairs that answer the same question. */
  readonly group: string;
  readonly taskType: string;
  readonly gap: number;
  readonly prompt: readonly RowMessage[];
  readonly tools: readonly RowTool[];
  /** With the reasoning that came before it, where there was any. */
  readonly chosen: AssistantMessage;
  readonly rejected: AssistantMessage;
};

/** Filled together, so that a mask is the same value in the question and in both answers. */
export function pairOf({ source, group, taskType, gap, ...row }: PairRow, seed: number): CuratedPair {
  const side = ({ message, reasoning }: PairRow['chosen']): AssistantMessage =>
    reasoning === undefined ? message : { ...message, reasoning_content: reasoning };
  const nameOf = ({ from }: PairRow['chosen']): string => ('signal' in from ? from.signal : from.answer);
  const seen = { prompt: row.prompt, tools: row.tools, chosen: side(row.chosen), rejected: side(row.rejected) };
  return {
    id: `${nameOf(row.chosen)}>${nameOf(row.rejected)}`,
    source,
    group,
    taskType: taskType ?? 'unknown',
    gap,
    ...fill(seen, seed, group),
  };
}
