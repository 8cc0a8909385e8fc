/**
 * A rule of one's own: any TypeScript function of a conversation. It answers with a worth in 0–1, true or false, or null where it
 * cannot tell; with an object where it has a reason to give or speaks of single turns. From a settings file it runs in a thread
 * of its own for at most `seconds` (isolate.ts), so that one that never returns holds up nothing but itself.
 */
import { type Measured, type Scorer, type ScorerInput, unmeasured } from './scorer.ts';

type Said = number | boolean | null;
export type RuleAnswer =
  | Said
  | { readonly value: Said; readonly reason?: string; readonly turns?: Readonly<Record<string, number>> };

export function rule(
  name: string,
  /** Changes whenever the same conversation would score differently. */
  version: string | number,
  check: (input: ScorerInput) => RuleAnswer | Promise<RuleAnswer>,
  { seconds = 5 }: { readonly seconds?: number } = {},
): Scorer {
  if (!/^[\p{L}\p{N}][\p{L}\p{N} _.-]{0,63}$/u.test(name)) throw new Error(`'${name}' cannot name a rule.`);
  const read = (answer: RuleAnswer): Measured => {
    const { value, reason, turns = {} } = typeof answer === 'object' && answer !== null ? answer : { value: answer };
    if (value === null) return unmeasured(reason ?? 'the rule cannot tell');
    const worth = typeof value === 'boolean' ? Number(value) : value;
    const why =
      reason ?? (worth === 1 ? 'the rule is kept' : worth === 0 ? 'the rule is not kept' : 'the rule is partly kept');
    return { value: worth, reason: why, turns: new Map(Object.entries(turns)) };
  };
  return {
    name,
    version: JSON.stringify(['rule', name, String(version)]),
    timeoutSeconds: seconds,
    score(input) {
      const answer = check(input);
      return answer instanceof Promise ? answer.then(read) : read(answer);
    },
  };
}
