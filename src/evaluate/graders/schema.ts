/** The answer is JSON, nothing around it, and fits this JSON Schema. `$ref` within the schema works; nothing is fetched. */
import { z } from 'zod';
import { parseUntrusted } from '../../collect/untrusted.ts';
import { misfit, schemaProblem } from '../../score/json-schema.ts';
import { type Grader, quoted, textOf } from './grader.ts';

export const schema: Grader<Record<string, unknown>> = {
  expected: z.record(z.string(), z.unknown()).superRefine((given, context) => {
    const problem = schemaProblem(given);
    if (problem !== null) context.addIssue({ code: 'custom', message: `cannot be used: ${problem}` });
  }),
  grade(expected, played) {
    const text = textOf(played);
    const value = parseUntrusted(text);
    if (value === undefined) return `The answer ${quoted(text)} is not JSON.`;
    const why = misfit(value, expected);
    return why === null ? null : `The answer does not fit the schema: ${why}`;
  },
};
