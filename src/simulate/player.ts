/**
 * A player: whatever writes the agent's turns. It gets many conversations at once, so that an engine can batch them, and
 * answers each. Players keep no state: what a turn needs from the one before (its exact tokens) travels with the
 * conversation. A player does not throw for one conversation's sake; it answers `failed`.
 */
import type { AssistantMessage, Message, ToolSpec } from './message.ts';

/** Exact tokens of one turn, kept so that training never tokenises again. All arrays but `prompt` are per completion token. */
export type TurnTokens = {
  readonly prompt: readonly number[];
  readonly completion: readonly number[];
  /** Logprobs in the distribution the tokens were drawn from, after temperature. */
  readonly logprobs: readonly number[];
  /** Logprobs under the plain model: what training compares with. null where the server gives only one kind. */
  readonly rawLogprobs: readonly number[] | null;
  /** Version of the weights that answered; null where the server does not say. */
  readonly version: number | null;
};

export type Conversation = {
  /** Of the episode: unique within a call to play() and the same for the same seed. */
  readonly id: string;
  readonly task: string;
  readonly attempt: number;
  /** Index of the turn to write, from 0. */
  readonly turn: number;
  /** Differs for every episode and turn. Attempts at one task with equal prompts share `groupSeed`. */
  readonly seed: number;
  readonly groupSeed: number;
  readonly messages: readonly Message[];
  readonly tools: readonly ToolSpec[];
  /** The last turn this player wrote here, and how many of `messages` it and its past cover. */
  readonly previous: { readonly tokens: TurnTokens; readonly messages: number } | null;
  /** Most tokens this turn may have, and most that prompt and completion may have together. */
  readonly maxTokens: number;
  readonly context: number;
};

export type PlayedTurn =
  | {
      readonly kind: 'said';
      readonly message: AssistantMessage;
      /** Why the tool call in it cannot be read, where one was tried. */
      readonly malformed?: string;
      /** `length`: cut at maxTokens. */
      readonly finish: 'stop' | 'length';
      readonly tokens?: TurnTokens;
      /** Counts, where tokens are not known. */
      readonly usage?: { readonly prompt: number; readonly completion: number };
    }
  /** The conversation no longer fits the context. */
  | { readonly kind: 'full'; readonly detail: string }
  | { readonly kind: 'failed'; readonly detail: string };

/** Answers are in the order of the conversations. */
export type Player = (conversations: readonly Conversation[], signal?: AbortSignal) => Promise<readonly PlayedTurn[]>;
