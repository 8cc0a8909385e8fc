/**
 * Whether a text matches a regular expression, for a limited time (time-limit.ts). A clock beside every match costs more than most
 * matches do, so an expression that cannot go over a text more than once for each of its characters is asked without one, as long
 * as the text is short: at most one quantifier, and nothing that looks back, ahead or repeats a group. Pure.
 */
import { withinTime } from './time-limit.ts';

const shortText = 4096;
const known = new WeakMap<RegExp, boolean>();

export function testPattern(pattern: RegExp, text: string, limitMs: number): boolean {
  if (text.length > shortText || !isPlain(pattern)) return withinTime(limitMs, () => pattern.test(text));
  return pattern.test(text);
}

function isPlain(pattern: RegExp): boolean {
  let plain = known.get(pattern);
  if (plain === undefined) {
    // What is escaped, or in a class, repeats nothing; `+?` is one quantifier.
    const bare = pattern.source.replace(/\\[^1-9k]/g, 'x').replace(/\[(?:[^\]\\]|\\.)*\]/g, 'x');
    plain =
      !/\\|\(\?|\)[*+?{]/.test(bare) && (bare.match(/[*+?{]\??/g) ?? []).length <= 1 && !pattern.flags.includes('v');
    known.set(pattern, plain);
  }
  return plain;
}
