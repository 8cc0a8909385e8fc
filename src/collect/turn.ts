/**
 * The record of one model call, as it goes into the journal and the database. Made once by collect/assemble.ts from the
 * bytes that passed through the gateway, redacted before it is written anywhere, never changed after.
 */
import type { Origin } from './trajectory.ts';

/** What became of the call. `disconnected`: the caller went away; `truncated`: the upstream's stream broke off. */
export const statuses = ['ok', 'error', 'disconnected', 'truncated'] as const;
export type TurnStatus = (typeof statuses)[number];

/** The wire format: OpenAI's four, and Anthropic's `messages`. */
export const endpoints = ['chat', 'completions', 'embeddings', 'responses', 'messages'] as const;
export type Endpoint = (typeof endpoints)[number];

/** One alternative of the answer (`n` > 1 gives several), streamed fragments joined. */
export type Choice = {
  readonly index: number;
  /** An OpenAI assistant message: role, content, tool_calls, reasoning fields, and whatever else the server sent. */
  readonly message: Readonly<Record<string, unknown>>;
  readonly finishReason: string | null;
  readonly tokenIds?: readonly number[];
  /** Logprob of each token as the server gave it (vLLM: before temperature unless told otherwise). */
  readonly logprobs?: readonly number[];
};

export type Turn = {
  /** UUIDv7, made at the door; the key that makes recording exactly-once. */
  readonly id: string;
  readonly trajectory: string;
  readonly agent: string;
  readonly user: string | null;
  readonly origin: Origin;
  /** Id of the client key it came with. */
  readonly clientKey?: string;
  /** Business keys the agent attached, e.g. `order:1234`; outcomes may refer to them. */
  readonly keys: readonly string[];
  readonly endpoint: Endpoint;
  readonly startedAt: number; // ms since epoch
  readonly firstTokenMs: number | null; // time to the first byte of the answer
  readonly latencyMs: number;
  readonly upstream: string;
  readonly release: string;
  /** The release that was picked, if it failed before its first byte and `release` answered in its place. */
  readonly assigned?: string;
  /** The model the upstream says answered, else the one asked for. */
  readonly model: string;
  readonly status: TurnStatus;
  /** HTTP status the caller saw; 0 if it left before any. */
  readonly httpStatus: number;
  readonly error: string | null;
  readonly attempts: number; // upstream calls made, retries and fallback included
  readonly stream: boolean;
  /** The whole request body, redacted. */
  readonly request: Readonly<Record<string, unknown>>;
  readonly choices: readonly Choice[];
  readonly promptTokenIds?: readonly number[];
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly reasoningTokens: number | null;
  readonly usage: Readonly<Record<string, unknown>> | null;
  /** Hash of the request's messages and this answer: what an inferred next turn must extend (collect/thread.ts). */
  readonly threadKey: string | null;
  /** How many pieces of personal data were replaced, by kind. */
  readonly redactions: Readonly<Record<string, number>>;
};
