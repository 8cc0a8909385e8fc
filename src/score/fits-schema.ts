/** A rule: the answer is JSON, nothing around it, and fits this JSON Schema. `$ref` within the schema works; nothing is fetched. */
import { parseUntrusted } from '../collect/untrusted.ts';
import { broken, byAnswer, kept } from './answer-rule.ts';
import { misfit, schemaProblem } from './json-schema.ts';
import type { ComputingScorer } from './scorer.ts';

export function fitsSchema(schema: Readonly<Record<string, unknown>>): ComputingScorer {
  const problem = schemaProblem(schema);
  if (problem !== null) throw new Error(`The schema of fitsSchema cannot be used: ${problem}.`);
  return {
    name: 'fits schema',
    version: JSON.stringify(['fits-schema', 1, schema]),
    inProcess: true,
    score: (input) =>
      byAnswer(input, ({ text }) => {
        const value = parseUntrusted(text);
        if (value === undefined) return broken('not JSON');
        const why = misfit(value, schema);
        return why === null ? kept : broken(why);
      }),
  };
}
