/**
 * Near-duplicates: conversations that say almost the same, word for word. What is compared is what users said and the agent did,
 * in runs of three words, so that another order of the same words is another conversation: a signature per conversation
 * (minhash.ts), and of those alike the best is kept. Who says the same in many slightly different ways counts once, also for
 * what one user or key may bring.
 */
import { setImmediate as breathe } from 'node:timers/promises';
import { alikeIn, column } from './column.ts';
import {
  bandKey,
  createBuckets,
  hashes,
  hashWord,
  mostInBucket,
  onesIn,
  type Signature,
  signatureOf,
  similarity,
} from './minhash.ts';
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
 * Signatures lie on the shelf. In memory is only what may be like another: its keys that another has too, and two bits of each of
 * its numbers, which tell most of those apart that are not alike without a look at the shelf.
 */
export function createWordings(shelf: Shelf): Wordings {
  let count = 0;
  const at = new Uint32Array(hashes);
  const read = (number: number, into = at): Signature => shelf.read(number * hashes, into);

  /** Of each the bands whose key another of them has too. */
  async function sharedBands(among: Uint32Array): Promise<Uint16Array> {
    const shared = new Uint16Array(count);
    for (let band = 0; band < bands; band++) {
      for (const alike of alikeIn(among, (number) => bandKey(read(number), band, bands)))
        for (const number of alike) shared[number]! |= 1 << band;
      await breathe();
    }
    return shared;
  }

  return {
    add(wording) {
      shelf.add(wording);
      count++;
    },
    async firstOfAlike(order, most) {
      const shared = await sharedBands(Uint32Array.from(order).sort());
      const isFirst = new Uint8Array(order.length).fill(1);
      const buckets = createBuckets();
      const [kept, sketches] = [column(Uint32Array), column(Uint32Array)];
      const sketch = new Uint32Array(sketchWords);
      const other = new Uint32Array(hashes);
      const isLikeOne = (wording: Signature, mine: number): boolean => {
        for (let band = 0; band < bands; band++) {
          if ((mine & (1 << band)) === 0) continue;
          let entry = buckets.newest(bandKey(wording, band, bands));
          for (let walked = 0; entry >= 0 && walked < mostInBucket; walked++) {
            const number = buckets.number(entry);
            if (
              mostAlike(sketch, sketches, number) >= most &&
              similarity(wording, read(kept.get(number), other)) >= most
            )
              return true;
            entry = buckets.older(entry);
          }
        }
        return false;
      };
      for (let i = 0; i < order.length; i++) {
        if (i % 1024 === 0) await breathe();
        const mine = shared[order[i]!]!;
        if (mine === 0) continue;
        const wording = read(order[i]!);
        sketchInto(wording, sketch);
        if (isLikeOne(wording, mine)) {
          isFirst[i] = 0;
          continue;
        }
        for (let band = 0; band < bands; band++)
          if ((mine & (1 << band)) !== 0) buckets.add(bandKey(wording, band, bands), kept.length);
        kept.push(order[i]!);
        for (const word of sketch) sketches.push(word);
      }
      return isFirst;
    },
  };
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
