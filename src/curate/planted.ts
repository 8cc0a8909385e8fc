/**
 * What somebody may have planted: a phrase of one's own list wherever it turns up, and runs of words that one owner (a client key,
 * or a user where there is one key) brings again and again and nobody else ever. Pure; fed line by line. It looks at what comes
 * from outside: what users say, results of tools, corrections and comments. Nothing it reports holds the words: a person looks
 * at the conversation.
 */
import { normalForm } from '../collect/normal-form.ts';
import { hashWord } from './minhash.ts';
import { phraseFinder } from './phrases.ts';

export type Planted = {
  /** Number of the phrase in the list, and where it was found first. */
  readonly canaries: readonly { readonly phrase: number; readonly found: number; readonly first: string }[];
  readonly repeated: readonly { readonly owner: string; readonly conversations: number; readonly first: string }[];
};

export type PlantedSearch = {
  /** `where`: what a person can look up. `owners` empty: only the list is asked. */
  look(texts: Iterable<string>, where: string, owners?: readonly string[]): void;
  found(): Planted;
};

const wordsInRun = 8;
/** From so many conversations on it is no accident. */
const leastConversations = 5;
/** Runs that are remembered; beyond it new ones are not, so that memory is bounded. */
const mostRuns = 1_000_000;
/** One run in so many is looked at, by its hash: a planted passage has many, and one is enough. */
const oneIn = 4;

export function searchPlanted(canaries: readonly string[]): PlantedSearch {
  const find = phraseFinder(canaries);
  const phrases = new Map<number, { found: number; first: string }>();
  type Run = { owner: string | null; conversations: number; last: string; readonly first: string };
  const runs = new Map<number, Run>();
  const note = (run: number, owner: string, where: string) => {
    const known = runs.get(run);
    if (known === undefined) {
      if (runs.size < mostRuns) runs.set(run, { owner, conversations: 1, last: where, first: where });
    } else if (known.owner !== owner) known.owner = null;
    else if (known.last !== where) {
      known.conversations++;
      known.last = where;
    }
  };
  return {
    look(texts, where, owners = []) {
      for (const text of texts) {
        for (const phrase of find(text)) {
          const known = phrases.get(phrase);
          if (known === undefined) phrases.set(phrase, { found: 1, first: where });
          else known.found++;
        }
        if (owners.length === 0) continue;
        const words =
          normalForm(text)
            .toLowerCase()
            .match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
        for (let i = 0; i + wordsInRun <= words.length; i++) {
          const run = hashWord(words.slice(i, i + wordsInRun).join(' '));
          if (run % oneIn === 0) note(run, owners.length === 1 ? owners[0]! : '', where);
        }
      }
    },
    found() {
      const most = new Map<string, { owner: string; conversations: number; first: string }>();
      for (const { owner, conversations, first } of runs.values()) {
        if (owner === null || owner === '' || conversations < leastConversations) continue;
        if (conversations > (most.get(owner)?.conversations ?? 0)) most.set(owner, { owner, conversations, first });
      }
      return {
        canaries: [...phrases].map(([phrase, of]) => ({ phrase, ...of })).sort((a, b) => a.phrase - b.phrase),
        repeated: [...most.values()].sort((a, b) => b.conversations - a.conversations),
      };
    },
  };
}
