/**
 * Near-duplicates: conversations that say almost the same, word for word. What is compared is what users said and the agent did,
 * in runs of three words, so that another order of the same words is another conversation. Pure: a signature per conversation
 * (minhash.ts), and of those alike the best is kept. Who says the same in many slightly different ways counts once, also for
 * what one user or key may bring.
 */
import { hashWord, type Signature, signatureOf, similarIndex, similarity } from './minhash.ts';
import type { Row } from './row.ts';

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

/** Of those in their order, which to keep: one that is at least `most` like one kept before it is not. */
export function firstOfAlike(wordings: readonly Signature[], most: number): boolean[] {
  const index = similarIndex(bands);
  const kept: Signature[] = [];
  return wordings.map((wording) => {
    for (const number of index.near(wording)) if (similarity(wording, kept[number]!) >= most) return false;
    index.add(wording);
    kept.push(wording);
    return true;
  });
}
