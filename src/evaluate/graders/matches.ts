/**
 * The answer matches this regular expression (JavaScript's), somewhere unless it says `^` and `$`. Flags: i, m, s, u. An
 * expression that goes over an answer again and again is stopped; it then says nothing about the answer.
 */
import { z } from 'zod';
import { withinTime } from '../../score/time-limit.ts';
import { type Grader, quoted, textOf } from './grader.ts';

const limitMs = 500;

const pattern = z.string().min(1).max(1000);
const flags = z.string().regex(/^[imsu]{0,4}$/, 'flags are of i, m, s and u');

type Expression = string | { pattern: string; flags?: string | undefined };

const expressionOf = (expected: Expression): RegExp =>
  typeof expected === 'string' ? new RegExp(expected) : new RegExp(expected.pattern, expected.flags);

export const matches: Grader<Expression> = {
  expected: z.union([pattern, z.strictObject({ pattern, flags: flags.optional() })]).superRefine((given, context) => {
    try {
      expressionOf(given);
    } catch (error) {
      context.addIssue({ code: 'custom', message: `is no regular expression: ${(error as Error).message}` });
    }
  }),
  grade(expected, played) {
    const expression = expressionOf(expected);
    const answer = textOf(played);
    const isMatch = withinTime(limitMs, () => expression.test(answer));
    return isMatch ? null : `The answer ${quoted(answer)} does not match ${expression}.`;
  },
};
