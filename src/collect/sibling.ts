/**
 * The record of another answer to the prompt of a turn: asked of the same release with other sampling settings, after the user
 * had theirs, and shown to nobody. It is not a turn: it has no place in the conversation, so nothing that scores, measures or
 * continues one meets it. The prompt, the user and their consent are those of the turn it belongs to.
 */
import type { Choice, Turn } from './turn.ts';

/** What was asked differently, and of which turn. */
export type SiblingOf = {
  /** Id of the turn whose prompt it answers. */
  readonly parent: string;
  readonly temperature: number;
  /** null: left to the request, or to the server. */
  readonly topP: number | null;
};

export type Sibling = SiblingOf & {
  readonly id: string;
  readonly agent: string;
  readonly origin: 'exploration';
  readonly startedAt: number; // ms since epoch
  readonly latencyMs: number;
  readonly upstream: string;
  readonly release: string;
  readonly model: string;
  /** Assistant messages as in a turn, without exact tokens. Tools that they call were not run. */
  readonly choices: readonly Omit<Choice, 'tokenIds' | 'logprobs'>[];
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly redactions: Turn['redactions'];
};

/** `made`: the exchange as if it had been a turn, fit to be written. */
export const makeSibling = (made: Turn, of: SiblingOf): Sibling => ({
  ...of,
  id: made.id,
  agent: made.agent,
  origin: 'exploration',
  startedAt: made.startedAt,
  latencyMs: made.latencyMs,
  upstream: made.upstream,
  release: made.release,
  model: made.model,
  choices: made.choices.map(({ index, message, finishReason }) => ({ index, message, finishReason })),
  promptTokens: made.promptTokens,
  completionTokens: made.completionTokens,
  redactions: made.redactions,
});
