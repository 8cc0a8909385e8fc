/** The answer is this text, white space at both ends aside. */
import { z } from 'zod';
import { type Grader, quoted, textOf } from './grader.ts';

export const equals: Grader<string> = {
  expected: z.string().max(100_000),
  grade(expected, played) {
    const text = textOf(played).trim();
    return text === expected.trim() ? null : `The answer is ${quoted(text)}, not ${quoted(expected.trim())}.`;
  },
};
