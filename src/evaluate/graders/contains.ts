/** The answer holds this text, or all of these, letter by letter. */
import { z } from 'zod';
import { type Grader, quoted, textOf } from './grader.ts';

const text = z.string().min(1).max(10_000);

export const contains: Grader<string | string[]> = {
  expected: z.union([text, z.array(text).min(1).max(100)]),
  grade(expected, played) {
    const answer = textOf(played);
    const missing = [expected].flat().filter((one) => !answer.includes(one));
    return missing.length === 0 ? null : `The answer does not contain ${missing.map(quoted).join(' or ')}.`;
  },
};
