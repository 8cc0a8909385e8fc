/**
 * The answer calls this tool, or all of these. Arguments that are expected must be among those given, with the same values;
 * others may be there too. Inside objects the same holds, lists are compared whole.
 */
import { z } from 'zod';
import { isObject, parseUntrusted } from '../../collect/untrusted.ts';
import { type Grader, quoted } from './grader.ts';

const call = z.strictObject({
  name: z.string().min(1).max(256),
  arguments: z.record(z.string(), z.unknown()).optional(),
});
type ExpectedCall = z.infer<typeof call>;

export const tool: Grader<ExpectedCall | ExpectedCall[]> = {
  expected: z.union([call, z.array(call).min(1).max(100)]),
  grade(expected, { message }) {
    const calls = message.tool_calls ?? [];
    const missing = [expected]
      .flat()
      .filter(
        (wanted) =>
          !calls.some(
            ({ function: { name, arguments: given } }) =>
              name === wanted.name && isWithin(wanted.arguments ?? {}, parseUntrusted(given || '{}')),
          ),
      );
    if (missing.length === 0) return null;
    const said = calls.map(({ function: { name, arguments: given } }) => `${name}(${given})`).join(', ');
    const wanted = missing.map(({ name, arguments: given }) => `${name}(${given ? JSON.stringify(given) : ''})`);
    return `The answer does not call ${wanted.join(' or ')}; it ${said === '' ? 'calls no tool' : `calls ${quoted(said)}`}.`;
  },
};

function isWithin(expected: unknown, given: unknown): boolean {
  if (Array.isArray(expected))
    return (
      Array.isArray(given) && given.length === expected.length && expected.every((one, i) => isWithin(one, given[i]))
    );
  if (isObject(expected))
    return (
      isObject(given) &&
      Object.entries(expected).every(([name, value]) => Object.hasOwn(given, name) && isWithin(value, given[name]))
    );
  return expected === given;
}
