/**
 * k-anonymity of questions: what fewer than k people asked about may point at one of them, so it is not learned.
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

import { setImmediate as breathe } from 'node:timers/promises';
import { normalForm } from '../collect/normal-form.ts';
import { alikeIn, type Column, column } from './column.ts';
import { bandKey, createNumbered, hashWord, jaccard, mostInBucket, onesIn, signatureOf } from './minhash.ts';
import type { RowMessage } from './row.ts';
import { pagesOfColumn, type Shelves } from './shelf.ts';

/** Hashes of its words, ascending, each once. */
export type Pattern = Uint32Array;

const mostCharacters = 4000;
const leastAlike = 0.5;
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
  for (const [word] of normalForm(question.slice(0, 4 * mostCharacters))
    .slice(0, mostCharacters)
    .matchAll(words)) {
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
  /** Who asked it, by numbers; returns the number of the pattern, the same for the same pattern. */
  add(pattern: Pattern, people: readonly number[]): number;
  /** Of each pattern how many people asked something like it, counted up to k; only of `wanted` where that is given. */
  sizes(wanted?: Iterable<number>): Promise<Uint16Array>;
};

/**
 * Patterns lie on shelves, with their keys, up to k people of each, and a sketch by which most of those that share too few words are
 * told apart without reading them. In memory is where each is found.
 */
export function createCrowd(k: number, shelves: Shelves): Crowd {
  const shelf = shelves();
  const inColumn = (): Column => shelves(pagesOfColumn);
  /** Where each pattern lies: its keys, then its words up to where the next begins. */
  const starts = inColumn();
  const sketches = shelves();
  const byHash = createNumbered(inColumn());
  /** People: of each pattern the newest entry in `who` + 1, the entry before it in `before`. */
  const own = inColumn();
  const counts = inColumn();
  const [who, before] = [inColumn(), inColumn()];
  /** Person → the last list in which it was met. */
  const met = column(Uint32Array);
  let lists = 0;

  const lengthOf = (number: number): number =>
    (number + 1 < starts.length ? starts.get(number + 1) : shelf.length) - starts.get(number) - bands;
  const read = (number: number): Pattern => shelf.read(starts.get(number) + bands, new Uint32Array(lengthOf(number)));

  function numberOf(pattern: Pattern): number {
    const hash = hashOf(pattern);
    const isIt = (number: number): boolean =>
      lengthOf(number) === pattern.length && read(number).every((word, i) => word === pattern[i]);
    const known = byHash.find(hash, isIt);
    if (known >= 0) return known;
    const number = byHash.add(hash);
    const signature = signatureOf(pattern);
    starts.push(shelf.add(Uint32Array.from({ length: bands }, (_, band) => bandKey(signature, band, bands))));
    shelf.add(pattern);
    for (const word of sketchOf(pattern)) sketches.push(word);
    own.push(0);
    counts.push(0);
    return number;
  }

  /** A person in the list with this head is met; returns how many there are in it. */
  function meet(head: number): number {
    lists++;
    let count = 0;
    for (let entry = head; entry > 0; entry = before.get(entry - 1), count++) met.set(who.get(entry - 1), lists);
    return count;
  }
  const isMet = (person: number): boolean => {
    while (met.length <= person) met.push(0);
    return met.get(person) === lists;
  };
  function prepend(person: number, head: number): number {
    met.set(person, lists);
    who.push(person);
    before.push(head);
    return who.length;
  }

  return {
    add(pattern, people) {
      const number = numberOf(pattern);
      let count = counts.get(number);
      // With k of them it is a crowd by itself, and who else asked makes no difference.
      if (count >= k || people.length === 0) return number;
      meet(own.get(number));
      for (const person of people) {
        if (count >= k || isMet(person)) continue;
        own.set(number, prepend(person, own.get(number)));
        count++;
      }
      counts.set(number, count);
      return number;
    },

    async sizes(wanted) {
      const all = Uint32Array.from({ length: starts.length }, (_, i) => i);
      const sizes = Uint16Array.from(all, counts.get);
      /** Those it is not known of yet that there are k; their people so far, beginning with their own. */
      const open = new Uint8Array(all.length).fill(wanted === undefined ? 1 : 0);
      for (const number of wanted ?? []) open[number] = 1;
      const found = Uint32Array.from(all, own.get);
      const ends = who.length;
      for (const number of all) if (sizes[number]! >= k) open[number] = 0;

      const sketch = new Uint32Array(sketchWords);
      const join = (number: number, alike: Uint32Array): void => {
        meet(found[number]!);
        const pattern = read(number);
        for (let word = 0; word < sketchWords; word++) sketch[word] = sketches.get(number * sketchWords + word);
        for (let i = alike.length - 1, walked = 0; i >= 0 && walked < mostInBucket; i--, walked++) {
          const other = alike[i]!;
          if (other === number || lacksTooMuch(sketch, pattern.length, sketches, other)) continue;
          if (lengthOf(other) * leastAlike > pattern.length || jaccard(pattern, read(other)) < leastAlike) continue;
          for (let entry = own.get(other); entry > 0; entry = before.get(entry - 1)) {
            const person = who.get(entry - 1);
            if (isMet(person)) continue;
            found[number] = prepend(person, found[number]!);
            if (++sizes[number]! < k) continue;
            open[number] = 0;
            return;
          }
        }
      };
      const room = new BigUint64Array(open.includes(1) ? all.length : 0);
      if (room.length > 0)
        for (let band = 0; band < bands; band++) {
          let looked = 0;
          for (const alike of alikeIn(all, (number) => shelf.get(starts.get(number) + band), room))
            for (const number of alike) {
              if (open[number] === 0) continue;
              join(number, alike);
              if (++looked % 256 === 0) await breathe();
            }
          await breathe();
        }
      who.cut(ends);
      before.cut(ends);
      return sizes;
    },
  };
}

/** FNV-1a over the words; what has the same hash is compared. */
function hashOf(pattern: Pattern): number {
  let hash = 0x811c9dc5;
  for (const word of pattern) hash = Math.imul(hash ^ word, 0x01000193) ^ (hash >>> 15);
  return hash >>> 0;
}

const sketchWords = 4;

/** A bit for each word, of 128. */
function sketchOf(pattern: Pattern): Uint32Array {
  const bits = new Uint32Array(sketchWords);
  for (const word of pattern) bits[(word >>> 5) % sketchWords]! |= 1 << (word & 31);
  return bits;
}

/** A bit that the other does not have stands for a word that it lacks; what lacks more than half is not looked at. */
function lacksTooMuch(sketch: Uint32Array, words: number, sketches: Column, other: number): boolean {
  let common = words;
  for (let word = 0; word < sketchWords; word++) {
    common -= onesIn(sketch[word]! & ~sketches.get(other * sketchWords + word));
    if (common < leastAlike * words) return true;
  }
  return false;
}
