/**
 * Near-duplicates: conversations that say almost the same, word for word. What is compared is what users said and the agent did,
 * in runs of three words, so that another order of the same words is another conversation: a signature per conversation
 * (minhash.ts), and of those alike the best is kept. Who says the same in many slightly different ways counts once, also for
 * what one user or key may bring.
 */
import { setImmediate as breathe } from 'node:timers/promises';
import { normalForm } from '../collect/normal-form.ts';
import { alikeIn } from './column.ts';
import { bandKey, hashes, hashWord, mostInBucket, onesIn, type Signature, signatureOf, similarity } from './minhash.ts';
import type { Row } from './row.ts';
import type { Shelf, Shelves } from './shelf.ts';

/** Ten bands of six: at 0.9 two meet in 9 995 of 10 000 cases, at 0.8 in 95 of 100. */
const bands = 10;
const mostWords = 20_000;

/** What was said in a conversation, to be compared. */
export function wordingOf({ threads }: Pick<Row, 'threads'>): Signature {
  const words: string[] = [];
  for (const { messages } of threads)
    for (const message of messages) {
      if (message.role !== 'user' && message.role !== 'assistant') continue;
      const calls =
        message.role === 'assistant'
          ? (message.tool_calls ?? []).map(({ function: { name, arguments: given } }) => `${name} ${given}`)
          : [];
      for (const text of [message.role, message.content ?? '', ...calls])
        for (const [word] of normalForm(text)
          .toLowerCase()
          .matchAll(/[\p{L}\p{M}\p{N}]+/gu))
          if (words.length < mostWords) words.push(word);
    }
  return signatureOf(runsOf(words));
}

function* runsOf(words: readonly string[]): Generator<number> {
  const last = Math.max(1, words.length - 2);
  for (let i = 0; i < last; i++) yield hashWord(words.slice(i, i + 3).join(' '));
}

export type Wordings = {
  /** Numbers it 0, 1, 2, … */
  add(wording: Signature): void;
  /** Of those in their order, which to keep: one that is at least `most` like one kept before it is not. */
  firstOfAlike(order: Uint32Array, most: number): Promise<Uint8Array>;
};

/**
 * Everything lies on shelves: signatures, the keys that several have, and of what has one of them two bits of each of its numbers, which
 * tell most of those apart that are not alike without a look at the signatures.
 */
export function createWordings(shelves: Shelves): Wordings {
  const shelf = shelves();
  const at = new Uint32Array(hashes);
  const read = (number: number, into = at): Signature => shelf.read(number * hashes, into);

  /** Band by band the keys that several have, ascending, each with the newest of them that was kept: none yet. */
  async function sharedKeys(among: Uint32Array): Promise<Shared> {
    const keys = shelves();
    const begins = [0];
    const room = new BigUint64Array(among.length);
    for (let band = 0; band < bands; band++) {
      const keyOf = (number: number) => bandKey(read(number), band, bands);
      for (const [first] of alikeIn(among, keyOf, room)) keys.add([keyOf(first!), 0]);
      begins.push(keys.length);
      await breathe();
    }
    return { keys, begins };
  }

  return {
    add(wording) {
      shelf.add(wording);
    },
    async firstOfAlike(order, most) {
      const shared = await sharedKeys(Uint32Array.from(order).sort());
      const isFirst = new Uint8Array(order.length).fill(1);
      /** Of each that is kept: which it is, its sketch, and band by band the one kept before it with the same key + 1. */
      const kept = shelves();
      const one = new Uint32Array(1 + sketchWords + bands);
      const sketch = one.subarray(1, 1 + sketchWords);
      const other = new Uint32Array(hashes);
      /** Where the newest of the same key is found, band by band; −1: nobody else has that key. */
      const places = new Float64Array(bands);
      const isLikeOne = (wording: Signature): boolean => {
        for (let band = 0; band < bands; band++) {
          let next = places[band]! < 0 ? 0 : shared.keys.get(places[band]!);
          for (let walked = 0; next > 0 && walked < mostInBucket; walked++) {
            const number = (next - 1) * one.length;
            if (
              mostAlike(sketch, kept, number + 1) >= most &&
              similarity(wording, read(kept.get(number), other)) >= most
            )
              return true;
            next = kept.get(number + 1 + sketchWords + band);
          }
        }
        return false;
      };
      for (let i = 0; i < order.length; i++) {
        if (i % 1024 === 0) await breathe();
        const wording = read(order[i]!);
        for (let band = 0; band < bands; band++) places[band] = placeIn(shared, band, bandKey(wording, band, bands));
        if (places.every((place) => place < 0)) continue;
        sketchInto(wording, sketch);
        if (isLikeOne(wording)) {
          isFirst[i] = 0;
          continue;
        }
        one[0] = order[i]!;
        for (let band = 0; band < bands; band++)
          one[1 + sketchWords + band] = places[band]! < 0 ? 0 : shared.keys.get(places[band]!);
        kept.add(one);
        for (const place of places) if (place >= 0) shared.keys.set(place, kept.length / one.length);
      }
      shared.keys.drop();
      kept.drop();
      return isFirst;
    },
  };
}

/** Two words of each key; those of a band begin where those of the band before it end. */
type Shared = { readonly keys: Shelf; readonly begins: readonly number[] };

/** Where the word behind a key is; −1: the key is not there. */
function placeIn({ keys, begins }: Shared, band: number, wanted: number): number {
  const end = begins[band + 1]! / 2;
  let [low, high] = [begins[band]! / 2, end];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (keys.get(2 * middle) < wanted) low = middle + 1;
    else high = middle;
  }
  return low < end && keys.get(2 * low) === wanted ? 2 * low + 1 : -1;
}

const inWord = 16;
const sketchWords = Math.ceil(hashes / inWord);

/** The lowest two bits of each number. */
function sketchInto(wording: Signature, into: Uint32Array): void {
  into.fill(0);
  for (let i = 0; i < hashes; i++) into[Math.floor(i / inWord)]! |= (wording[i]! & 3) << (2 * (i % inWord));
}

/** Where two bits differ the numbers do; so this is never less than the similarity. `from`: where the other sketch begins. */
function mostAlike(sketch: Uint32Array, kept: { get(i: number): number }, from: number): number {
  let differ = 0;
  for (let word = 0; word < sketchWords; word++) {
    const bits = sketch[word]! ^ kept.get(from + word);
    differ += onesIn((bits | (bits >>> 1)) & 0x55555555);
  }
  return (hashes - differ) / hashes;
}
