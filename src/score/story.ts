/**
 * A conversation as scorers read it: in order, each turn with what is new in it, and the answers that were meant for the user.
 * Several scorers of a reward read the same conversation, so its story is made once.
 */
import { type Shown, type Step, timelineOf } from '../collect/timeline.ts';
import type { Turn } from '../collect/turn.ts';
import { inOrder } from './scorer.ts';

const known = new WeakMap<readonly Turn[], readonly Step[]>();

export function storyOf(turns: readonly Turn[]): readonly Step[] {
  const made = known.get(turns) ?? timelineOf(inOrder(turns)).steps;
  known.set(turns, made);
  return made;
}

export type Answer = {
  readonly turn: Turn;
  readonly text: string;
  /** Of the message it answers, as far as the request shows it. */
  readonly question: string;
};

/** What the first choice says: that is the one agents act on. */
export const saidBy = ({ answers }: Step): Shown | null => answers[0]?.message ?? null;

/** What the user said last, before this step's answer. */
export const askedIn = ({ news }: Step): string | null => news.findLast(({ role }) => role === 'user')?.text ?? null;

/** Turns that end in words and not in calls of tools. One with no word at all is an empty answer. */
export function answersOf(turns: readonly Turn[]): Answer[] {
  let question = '';
  return storyOf(turns).flatMap((step) => {
    question = askedIn(step) ?? question;
    const { turn } = step;
    const said = saidBy(step);
    if (said === null || turn.status !== 'ok' || turn.endpoint === 'embeddings') return [];
    return said.toolCalls.length > 0 ? [] : [{ turn, text: said.text, question }];
  });
}
