/**
 * A grader: one thing that a golden case can expect of an answer. It says what may be written under its name in `expect`, and
 * whether an answer holds to it. Throwing means that it could not tell (a regular expression that never ends, a judge that is
 * down): that is nobody's answer, and the attempt is not measured.
 */
import type { z } from 'zod';
import type { Turn } from '../../collect/turn.ts';
import type { Services } from '../../score/scorer.ts';
import type { RewardSpec } from '../../score/weighted.ts';
import type { AssistantMessage } from '../../simulate/message.ts';

/** What there is to grade. */
export type Played = {
  readonly message: AssistantMessage;
  /** The exchange as it would be recorded, for scorers. */
  readonly turn: Turn;
  /** The agent's. */
  readonly reward: RewardSpec;
  /** Lent to its scorers. */
  readonly services?: Services;
};

export type Grader<Expected> = {
  readonly expected: z.ZodType<Expected>;
  /** null: it holds. Otherwise why not, as a sentence. */
  grade(expected: Expected, played: Played): string | null | Promise<string | null>;
};

export const textOf = ({ message }: Played): string => message.content ?? '';

/** A text as a reason quotes it. */
export const quoted = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
