/**
 * Near-duplicates: conversations that say almost the same, word for word. What is compared is what users said and the agent did,
 * in runs of three words, so that another order of the same words is another conversation: a signature per conversation
 * (minhash.ts), and of those alike the best is kept. Who says the same in many slightly different ways counts once, also for
 * what one user or key may bring.
 */
import { setImmediate as breathe } from 'node:timers/promises';
import { alikeIn, type Column, column } from './column.ts';
import { bandKey, hashes, hashWord, mostInBucket, onesIn, type Signature, signatureOf, similarity } from './minhash.ts';
import type { Row } from './row.ts';
import type { Shelf } from './shelf.ts';

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
        for (const [word] of text
          .normalize('NFKC')
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
 * Signatures lie on the shelf. In memory are the keys that several have, and of what has one of them two bits of each of its numbers,
 * which tell most of those apart that are not alike without a look at the shelf.
 */
export function createWordings(shelf: Shelf): Wordings {
  const at = new Uint32Array(hashes);
  const read = (number: number, into = at): Signature => shelf.read(number * hashes, into);

  /** What is kept of those alike: of each band the keys that several have, ascending, and of each its newest. */
  async function sharedKeys(among: Uint32Array): Promise<Shared[]> {
    const shared = Array.from({ length: bands }, () => ({ keys: column(Uint32Array), newest: column(Uint32Array) }));
    for (const [band, { keys, newest }] of shared.entries()) {
      const keyOf = (number: number) => bandKey(read(number), band, bands);
      for (const [first] of alikeIn(among, keyOf)) {
        keys.push(keyOf(first!));
        newest.push(0);
      }
      await breathe();
    }
    return shared;
  }

  return {
    add(wording) {
      shelf.add(wording);
    },
    async firstOfAlike(order, most) {
      const shared = await sharedKeys(Uint32Array.from(order).sort());
      const isFirst = new Uint8Array(order.length).fill(1);
      const [kept, sketches] = [column(Uint32Array), column(Uint32Array)];
      /** Of each that is kept, band by band, the one before it with the same key + 1. */
      const older = column(Uint32Array);
      const sketch = new Uint32Array(sketchWords);
      const other = new Uint32Array(hashes);
      /** Where the keys of a wording are among those that several have; −1: nowhere. */
      const places = new Int32Array(bands);
      const isLikeOne = (wording: Signature): boolean => {
        for (let band = 0; band < bands; band++) {
          let next = places[band]! < 0 ? 0 : shared[band]!.newest.get(places[band]!);
          for (let walked = 0; next > 0 && walked < mostInBucket; walked++) {
            const number = next - 1;
            if (
              mostAlike(sketch, sketches, number) >= most &&
              similarity(wording, read(kept.get(number), other)) >= most
            )
              return true;
            next = older.get(number * bands + band);
          }
        }
        return false;
      };
      for (let i = 0; i < order.length; i++) {
        if (i % 1024 === 0) await breathe();
        const wording = read(order[i]!);
        for (let band = 0; band < bands; band++)
          places[band] = placeOf(shared[band]!.keys, bandKey(wording, band, bands));
        if (places.every((place) => place < 0)) continue;
        sketchInto(wording, sketch);
        if (isLikeOne(wording)) {
          isFirst[i] = 0;
          continue;
        }
        kept.push(order[i]!);
        for (const word of sketch) sketches.push(word);
        for (let band = 0; band < bands; band++) {
          const place = places[band]!;
          older.push(place < 0 ? 0 : shared[band]!.newest.get(place));
          if (place >= 0) shared[band]!.newest.set(place, kept.length);
        }
      }
      return isFirst;
    },
  };
}

type Shared = { readonly keys: Column; readonly newest: Column };

/** Of a number among ascending ones; −1: it is not there. */
function placeOf(ascending: Column, wanted: number): number {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ascending.get(middle) < wanted) low = middle + 1;
    else high = middle;
  }
  return low < ascending.length && ascending.get(low) === wanted ? low : -1;
}

const inWord = 16;
const sketchWords = Math.ceil(hashes / inWord);

/** The lowest two bits of each number. */
function sketchInto(wording: Signature, into: Uint32Array): void {
  into.fill(0);
  for (let i = 0; i < hashes; i++) into[Math.floor(i / inWord)]! |= (wording[i]! & 3) << (2 * (i % inWord));
}

/** Where two bits differ the numbers do; so this is never less than the similarity. */
function mostAlike(sketch: Uint32Array, sketches: { get(i: number): number }, number: number): number {
  let differ = 0;
  for (let word = 0; word < sketchWords; word++) {
    const bits = sketch[word]! ^ sketches.get(number * sketchWords + word);
    differ += onesIn((bits | (bits >>> 1)) & 0x55555555);
  }
  return (hashes - differ) / hashes;
}
