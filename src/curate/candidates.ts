/**
 * What passed the gates that look at one conversation alone, and waits for those that look at all together. Of each sixteen bytes are in
 * memory, what it is ranked by and its question; whose it is and words to compare are on shelves, and what belongs to it
 * (`note`) is a line in a draft. Of pairs the same.
 */
import { createHash } from 'node:crypto';
import { column } from './column.ts';
import type { Draft } from './files.ts';
import type { Crowd, Pattern } from './k-anonymity.ts';
import type { Signature } from './minhash.ts';
import { createOwners, type Names, type Owners } from './names.ts';
import type { Wordings } from './near-duplicates.ts';
import { pagesOfColumn, type Shelves } from './shelf.ts';

export type Passed = {
  readonly trajectory: string;
  readonly day: string;
  /** Everybody who took part; nobody where no user is known. */
  readonly users: readonly string[];
  readonly keys: readonly string[];
  readonly sources: readonly string[];
  readonly tenants: readonly string[];
  readonly taskType: string | null;
  readonly score: number;
  readonly fingerprint: string;
  readonly question: Pattern;
  /** What was said in it, to be compared; not of pairs. */
  readonly wording?: Signature;
};

/** Numbered in the order in which they came. */
export type Waiting = {
  readonly length: number;
  readonly users: Owners;
  readonly keys: Owners;
  readonly sources: Owners;
  readonly tenants: Owners;
  readonly taskTypes: Owners;
  /** Who asked what; null: k-anonymity is not asked for. */
  readonly crowd: Crowd | null;
  /** Its question in the crowd. */
  questionOf(i: number): number;
  readonly wordings: Wordings | null;
  /** By what was said: below zero, zero for the same, or above. */
  compareDrawn(a: number, b: number): number;
  /** 32 bits of it. */
  drawnOf(i: number): number;
  /**
   * Best first. Among equals the seed draws, by what was said and then by id: neither time nor order of arrival has a say, and
   * the same conversations recorded again under other ids are drawn alike.
   */
  ranked(): Uint32Array;
};

export type Candidates<Note> = Waiting & {
  /** `name`: what they are put in order by in the end. */
  add(one: Passed, name: string, note: Note): Promise<void>;
  /** The notes of these, by name. */
  inOrder(kept: Uint32Array): AsyncGenerator<Note>;
};

/**
 * Words of 32 bits that are kept of a draw: 96 bits by what was said, which nothing else has, and 64 by id. The first is in memory and
 * tells nearly all of them apart; the others are on a shelf.
 */
const drawnWords = 3;
const drawnOfId = 2;
const shelved = drawnWords - 1 + drawnOfId;

export function createCandidates<Note>(of: {
  readonly seed: number;
  readonly people: Names;
  readonly crowd: Crowd | null;
  readonly wordings: Wordings | null;
  readonly notes: Draft;
  readonly shelves: Shelves;
}): Candidates<Note> {
  const { seed, crowd, wordings, notes, shelves } = of;
  const owners = (names?: Names): Owners => createOwners(shelves(pagesOfColumn), names);
  const users = owners(of.people);
  const [keys, sources, tenants, taskTypes] = [owners(), owners(), owners(), owners()];
  const [scores, drawn, questions] = [column(Float64Array), column(Uint32Array), column(Uint32Array)];
  const draws = shelves(pagesOfColumn);
  const draw = (words: number, ...by: string[]): number[] => {
    const digest = createHash('sha256')
      .update(JSON.stringify([seed, ...by]))
      .digest();
    return Array.from({ length: words }, (_, i) => digest.readUInt32BE(4 * i));
  };
  const compareWords = (a: number, b: number, from: number, to: number): number => {
    for (let i = from; i < to; i++) {
      const difference = draws.get(a * shelved + i) - draws.get(b * shelved + i);
      if (difference !== 0) return difference;
    }
    return 0;
  };
  const compareDrawn = (a: number, b: number): number =>
    drawn.get(a) - drawn.get(b) || compareWords(a, b, 0, drawnWords - 1);
  return {
    ...{ users, keys, sources, tenants, taskTypes, crowd, wordings, compareDrawn },
    get length() {
      return scores.length;
    },
    questionOf: (i) => questions.get(i),
    drawnOf: drawn.get,
    async add(one, name, note) {
      const people = users.add(one.users);
      keys.add(one.keys);
      sources.add(one.sources);
      tenants.add(one.tenants);
      taskTypes.add([one.taskType ?? 'unknown']);
      scores.push(one.score);
      const [first, ...rest] = draw(drawnWords, one.fingerprint);
      drawn.push(first!);
      draws.add([...rest, ...draw(drawnOfId, one.trajectory, one.day)]);
      if (crowd !== null) questions.push(crowd.add(one.question, people));
      if (one.wording) wordings?.add(one.wording);
      await notes.add(JSON.stringify([name, note]));
    },
    ranked: () =>
      Uint32Array.from({ length: scores.length }, (_, i) => i).sort(
        (a, b) =>
          scores.get(b) - scores.get(a) || compareDrawn(a, b) || compareWords(a, b, drawnWords - 1, shelved) || a - b,
      ),
    inOrder: (kept) => sortedNotes<Note>(notes, scores.length, kept),
  };
}

type Named<Note> = readonly [name: string, note: Note];
type Read<Note> = { readonly named: Named<Note>; readonly line: string };

/** So many are sorted at a time. */
const sortedAtOnce = 8192;

/** Lines of a draft in the order of their names: sorted a few at a time, written behind them, and merged. */
async function* sortedNotes<Note>(notes: Draft, count: number, kept: Uint32Array): AsyncGenerator<Note> {
  const isKept = new Uint8Array(count);
  for (const number of kept) isKept[number] = 1;
  const runs: AsyncGenerator<Read<Note>>[] = [];
  let few: Read<Note>[] = [];
  let i = 0;
  for await (const line of notes.lines(0, notes.length())) {
    if (isKept[i++] === 0) continue;
    few.push({ line, named: JSON.parse(line) as Named<Note> });
    if (few.length < sortedAtOnce) continue;
    const begin = notes.length();
    for (const one of few.sort(byName)) await notes.add(one.line);
    runs.push(readNotes(notes.lines(begin, notes.length())));
    few = [];
  }
  runs.push(given(few.sort(byName)));
  yield* merged(runs);
}

const byName = <Note>(a: Read<Note>, b: Read<Note>): number =>
  a.named[0] < b.named[0] ? -1 : a.named[0] > b.named[0] ? 1 : 0;

async function* given<T>(all: readonly T[]): AsyncGenerator<T> {
  yield* all;
}

async function* readNotes<Note>(lines: AsyncGenerator<string>): AsyncGenerator<Read<Note>> {
  for await (const line of lines) yield { line, named: JSON.parse(line) as Named<Note> };
}

async function* merged<Note>(runs: readonly AsyncGenerator<Read<Note>>[]): AsyncGenerator<Note> {
  /** The next of each run, the first of all of them last. */
  const heads: { readonly next: Read<Note>; readonly run: AsyncGenerator<Read<Note>> }[] = [];
  const take = async (run: AsyncGenerator<Read<Note>>): Promise<void> => {
    const { value: next, done } = await run.next();
    if (done) return;
    let [low, high] = [0, heads.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (byName(heads[middle]!.next, next) > 0) low = middle + 1;
      else high = middle;
    }
    heads.splice(low, 0, { next, run });
  };
  for (const run of runs) await take(run);
  for (let first = heads.pop(); first !== undefined; first = heads.pop()) {
    yield first.next.named[1];
    await take(first.run);
  }
}
