/**
 * What is confidential without being personal: customer lists, source code, contract terms, named projects. Found by lists and
 * patterns of one's own (`curate.confidential`). Pure. Whether it is kept out, or kept inside with a mark, is for the gates.
 */
import { phraseFinder } from './phrases.ts';
import type { Settings } from './settings.ts';

type Rules = Settings['confidential'];

/** Made once for a set of rules: a list may be long. */
const finders = new WeakMap<Rules, (text: string) => boolean>();

const finderOf = (rules: Rules): ((text: string) => boolean) => {
  const known = finders.get(rules);
  if (known !== undefined) return known;
  const find = phraseFinder(rules.phrases);
  const finder = (text: string) => find(text).length > 0 || rules.patterns.some((pattern) => pattern.test(text));
  finders.set(rules, finder);
  return finder;
};

/** Strings anywhere in a JSON value; names of fields too. */
export function* textsIn(value: unknown): Generator<string> {
  if (typeof value === 'string') yield value;
  else if (Array.isArray(value)) for (const one of value) yield* textsIn(one);
  else if (typeof value === 'object' && value !== null)
    for (const [name, one] of Object.entries(value)) {
      yield name;
      yield* textsIn(one);
    }
}

export function isConfidential(words: unknown, rules: Rules): boolean {
  if (rules.phrases.length + rules.patterns.length === 0) return false;
  const finds = finderOf(rules);
  for (const text of textsIn(words)) if (finds(text)) return true;
  return false;
}
