/**
 * Shadow traffic: a share of the conversations also goes to the candidate, after each user has their answer. What it says is
 * compared and shown to nobody; its tool calls are compared and made by nobody. Here are the settings, the comparison of two
 * answers, and what follows from many. Pure; gateway/shadower.ts asks, store/shadows.ts keeps.
 *
 * A conversation is followed from turn to turn as long as the candidate calls what the baseline called: then the baseline's tool
 * results are its own. Where it would have gone another way, nobody knows what it would have met.
 */
import { z } from 'zod';
import { isObject, listOf, parseUntrusted, withSortedKeys } from '../collect/untrusted.ts';
import { type Finding, words } from './checks/check.ts';
import { shareEnd } from './evidence.ts';

const counted = (unit: string, description: string) => ({ unit, description });

export const shadowSettings = z.strictObject({
  share: z
    .number()
    .min(0)
    .max(1)
    .default(0.05)
    .describe('Share of conversations that the candidate is asked too, before any user gets it; 0: no shadow.'),
  holdSeconds: z.number().nonnegative().default(86_400).meta(counted('seconds', 'How long it lasts at least.')),
  minTurns: z
    .int()
    .min(1)
    .default(50)
    .meta(counted('comparisons', 'Comparisons needed before users get the candidate.')),
  perMinute: z
    .int()
    .min(1)
    .max(100_000)
    .default(60)
    .meta(counted('calls', 'Shadow calls in one minute, by one gateway.')),
  most: z
    .int()
    .min(1)
    .max(10_000_000)
    .default(10_000)
    .meta(counted('calls', 'Shadow calls of one rollout, by all gateways together: what it can cost.')),
  maxTokens: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(1024)
    .meta(counted('tokens', 'The longest shadow answer; a request that asks for less gets less.')),
});
export type ShadowSettings = Readonly<z.output<typeof shadowSettings>>;

export type Comparison = {
  /** Of the candidate's turn, and of the one the user got. */
  readonly id: string;
  readonly parent: string;
  readonly rollout: string;
  readonly agent: string;
  readonly at: number; // ms since epoch
  readonly failed: boolean;
  /** The same tool calls, or words on both sides; null: it failed. */
  readonly agreed: boolean | null;
  /** Of the words, 0 to 1; null where one side has none. */
  readonly similarity: number | null;
  readonly baselineMs: number;
  readonly candidateMs: number;
  readonly baselineTokens: number | null;
  readonly candidateTokens: number | null;
};

type Message = Readonly<Record<string, unknown>>;

/** Two answers to the same request. */
export function compareAnswers(baseline: Message, candidate: Message): Pick<Comparison, 'agreed' | 'similarity'> {
  const [before, after] = [callsOf(baseline), callsOf(candidate)];
  const agreed = before.length === after.length && before.every((call, i) => call === after[i]);
  const [said, says] = [wordsOf(baseline), wordsOf(candidate)];
  return { agreed, similarity: said.length === 0 || says.length === 0 ? null : dice(said, says) };
}

/** Each as text: name and arguments, whatever the order of their keys. */
export const callsOf = ({ tool_calls: calls }: Message): string[] =>
  listOf(calls)
    .slice(0, 100)
    .map((call) => {
      const { function: called } = isObject(call) ? call : {};
      const { name, arguments: given } = isObject(called) ? called : {};
      const read = typeof given === 'string' ? (parseUntrusted(given) ?? given) : given;
      return JSON.stringify([name, withSortedKeys(read)]);
    });

const mostCharacters = 20_000;
const wordsOf = ({ content }: Message): string[] =>
  typeof content === 'string'
    ? (content
        .slice(0, mostCharacters)
        .toLowerCase()
        .match(/[\p{L}\p{N}]+/gu) ?? [])
    : [];

/** Words in common, of all words of both (Dice 1945). */
function dice(a: readonly string[], b: readonly string[]): number {
  const counts = new Map<string, number>();
  for (const word of a) counts.set(word, (counts.get(word) ?? 0) + 1);
  let common = 0;
  for (const word of b) {
    const left = counts.get(word) ?? 0;
    if (left > 0) common++;
    counts.set(word, left - 1);
  }
  return (2 * common) / (a.length + b.length);
}

/** All comparisons of a rollout. */
export type ShadowSummary = {
  readonly compared: number;
  readonly failed: number;
  readonly agreed: number;
  readonly similarity: number | null;
  readonly baseline: { readonly p50Ms: number | null; readonly p99Ms: number | null; readonly tokens: number | null };
  readonly candidate: { readonly p50Ms: number | null; readonly p99Ms: number | null; readonly tokens: number | null };
  /** Answers of the candidate that took longer than the limit of the latency check. */
  readonly slow: number;
};

type Judged = {
  readonly errorRatio: number;
  readonly shadow: ShadowSettings;
};

/** Failures that nobody minds before there is a baseline's rate to compare with. */
const tolerated = 0.02;
const steadyShare = 0.01;

/** `baselineErrors`: its share of failed calls in the same time. */
export function judgeShadow(
  { compared, failed, agreed, slow }: ShadowSummary,
  baselineErrors: number,
  { errorRatio, shadow }: Judged,
  alpha: number,
): Finding[] {
  const found = { name: 'shadow', needed: true };
  if (compared < shadow.minTurns)
    return [
      {
        ...{ ...found, end: 'unmeasured' },
        reason: `Too few shadow answers to tell: ${compared}, ${shadow.minTurns} are needed.`,
      },
    ];
  const bound = Math.min(0.9, Math.max(tolerated, errorRatio * baselineErrors));
  const errors = shareEnd(failed, compared, bound, alpha / 2);
  const answered = compared - failed;
  const latency = shareEnd(slow, answered, steadyShare, alpha / 2);
  return [
    {
      ...{ ...found, end: errors },
      reason: `Shadow: ${failed} of ${compared} calls failed; ${words(errors, `more than ${(bound * 100).toFixed(1)}%`)}`,
    },
    {
      ...{ ...found, end: latency },
      reason: `Shadow: ${slow} of ${answered} answers were too slow; ${words(latency, 'more than 1 in 100')}`,
    },
    {
      ...{ name: 'shadow', needed: false, end: 'pass' },
      reason: `Shadow: ${agreed} of ${answered} answers did as the baseline did: the same tool calls, or words.`,
    },
  ];
}
