/**
 * k-anonymity of questions: what fewer than k people asked about may point at one of them, so it is not learned. Pure.
 *
 * pattern   a question without its entities (numbers, masks and placeholders, names) and without what only gives it a form
 *           (stop words, endings), as a set of words
 * crowd     who asked what. A question's crowd is everybody who asked something that shares at least half of its words: said
 *           another way it is still the same question. Compared one to one and not in chains, so a rare question is
 *           not carried along by neighbours of neighbours
 *
 * The question of a conversation is the first thing its user says; of a pair, the first user message of the prompt. It finds no
 * entities itself beyond what is said above: what names people is for the redaction before (collect/redact).
 */

import { hashWord, jaccard, signatureOf, similarIndex } from './minhash.ts';
import type { RowMessage } from './row.ts';

/** Hashes of its words, ascending, each once. */
export type Pattern = Uint32Array;

const mostCharacters = 4000;
const alike = 0.5;
/** 1 − (1 − s²)^30: at half of the words in common two meet in 9 998 of 10 000 cases. Who is missed is suppressed: the safe side. */
const bands = 30;

const words = /\[[A-Za-z][A-Za-z0-9_-]{1,40}\]|[\p{L}\p{M}\p{N}]+(?:['’_.-][\p{L}\p{M}\p{N}]+)*|[.!?:\n]/gu;
const stop = new Set(
  `a an and any are as at be been but by can could did do does for from had has have he hello hey hi how i if in is it its
  just let me my no not of on or our please pls she should so some still that the their them then there these they this those
  to up us was we were what when where which who why will with would you your yes am been being into than too very`
    .split(/\s+/)
    .filter((word) => word !== ''),
);

export function patternOf(question: string): Pattern {
  const kept = new Set<number>();
  let begins = true;
  for (const [word] of question.normalize('NFKC').slice(0, mostCharacters).matchAll(words)) {
    const inside = !begins;
    begins = /^[.!?:\n]$/.test(word);
    if (begins || isEntity(word, inside)) continue;
    const plain = word.toLowerCase().replace(/['’].*$/, '');
    // Before its ending goes: `where` would be `wher`, and `does` `doe`.
    if (stop.has(plain)) continue;
    const stem = stemOf(plain);
    if (stem !== '' && !stop.has(stem)) kept.add(hashWord(stem));
  }
  return Uint32Array.from(kept).sort();
}

/** A mask, something with digits, or a capital inside a sentence; who SHOUTS names nobody. */
const isEntity = (word: string, inside: boolean): boolean =>
  word.startsWith('[') || /\p{N}/u.test(word) || (inside && /^\p{Lu}.*\p{Ll}/u.test(word));

/** English endings, and the particles that Korean puts behind a noun: crude, and the same for both sides. */
function stemOf(word: string): string {
  if (/^\p{Script=Hangul}{3,}$/u.test(word)) return word.replace(/(?:은|는|이|가|을|를|에|의|로|와|과|도|요)$/u, '');
  if (word.length < 5) return word.length === 4 && /[^s]s$/.test(word) ? word.slice(0, -1) : word;
  return word.replace(/(?:ies|ing|ed|es|s)$/u, '').replace(/e$/u, '');
}

export const questionOf = (messages: readonly RowMessage[]): string =>
  messages.find((message) => message.role === 'user')?.content ?? '';

export type Crowd = {
  add(pattern: Pattern, people: readonly string[]): void;
  /** How many people asked something like it; counted up to k. */
  size(pattern: Pattern): number;
};

export function createCrowd(k: number): Crowd {
  const index = similarIndex(bands);
  const known: { readonly pattern: Pattern; readonly people: Set<string> }[] = [];
  const numbers = new Map<string, number>();
  return {
    add(pattern, people) {
      const key = pattern.join();
      let number = numbers.get(key);
      if (number === undefined) {
        number = known.length;
        numbers.set(key, number);
        known.push({ pattern, people: new Set() });
        index.add(signatureOf(pattern));
      }
      const asked = known[number]!.people;
      // With k of them it is a crowd by itself, and who else asked makes no difference.
      for (const person of people) if (asked.size < k) asked.add(person);
    },
    size(pattern) {
      const people = new Set<string>();
      const looked = new Set<number>();
      for (const number of index.near(signatureOf(pattern))) {
        if (looked.has(number)) continue;
        looked.add(number);
        const other = known[number]!;
        if (jaccard(pattern, other.pattern) < alike) continue;
        for (const person of other.people) people.add(person);
        if (people.size >= k) return k;
      }
      return people.size;
    },
  };
}
