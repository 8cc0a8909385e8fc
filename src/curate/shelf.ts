/**
 * Numbers that are too many for memory, in a file under a name of its own that nobody else reads: words of 32 bits, written one after
 * the other and read back anywhere. What fits into the pages that are held never touches the disk. Reading does not wait: it is for
 * what compares all with all, and a page is read in microseconds.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Column } from './column.ts';

export type Shelf = Column & {
  /** Returns where it begins. */
  add(words: ArrayLike<number>): number;
  /** Into `into`, as many as it holds. */
  read<T extends Uint32Array>(at: number, into: T): T;
  drop(): void;
};

const inPage = 1024; // words: 4 KiB, so that a look at one of millions is a small read

/** Another shelf; `held`: how many pages of it are in memory. */
export type Shelves = (held?: number) => Shelf;

/** What is read in order, or a number at a time: 1 MB. */
export const pagesOfColumn = 256;

/** `held`: pages in memory, 4 MB. */
export function openShelf(folder: string, held = 1024): Shelf {
  const path = join(folder, `.draft-${process.pid}-${randomBytes(6).toString('hex')}`);
  let file: number | null = null;
  let length = 0;
  const pages: Uint32Array[] = [];
  /** Place → the page that is in it, and whether the file does not have it yet. */
  const inPlace = new Float64Array(held).fill(-1);
  const isNew = new Uint8Array(held);
  const write = (place: number): void => {
    if (file === null) {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      file = openSync(path, 'wx+', 0o600);
    }
    const page = Buffer.from(pages[place]!.buffer);
    for (let at = 0; at < page.length; )
      at += writeSync(file, page, at, page.length - at, inPlace[place]! * page.length + at);
    isNew[place] = 0;
  };
  const pageOf = (number: number, isThere: boolean): number => {
    const place = number % held;
    if (inPlace[place] === number) return place;
    if (isNew[place]) write(place);
    pages[place] ??= new Uint32Array(inPage);
    inPlace[place] = number;
    if (!isThere) return place;
    const page = Buffer.from(pages[place].buffer);
    for (let at = 0; at < page.length; ) {
      const read = readSync(file!, page, at, page.length - at, number * page.length + at);
      if (read === 0) throw new Error(`${path} is shorter than what was written to it; is the disk full?`);
      at += read;
    }
    return place;
  };
  const put = (at: number, word: number, isThere: boolean): void => {
    const place = pageOf(Math.floor(at / inPage), isThere);
    pages[place]![at % inPage] = word;
    isNew[place] = 1;
  };
  const push = (word: number): void => {
    put(length, word, length % inPage > 0);
    length++;
  };
  return {
    get length() {
      return length;
    },
    push,
    add(words) {
      const at = length;
      for (let i = 0; i < words.length; i++) push(words[i]!);
      return at;
    },
    set: (at, word) => put(at, word, true),
    cut(to) {
      length = to;
    },
    get: (at) => pages[pageOf(Math.floor(at / inPage), true)]![at % inPage]!,
    read(at, into) {
      for (let done = 0; done < into.length; ) {
        const begin = (at + done) % inPage;
        const count = Math.min(into.length - done, inPage - begin);
        const page = pages[pageOf(Math.floor((at + done) / inPage), true)]!;
        for (let i = 0; i < count; i++) into[done + i] = page[begin + i]!;
        done += count;
      }
      return into;
    },
    drop() {
      pages.length = 0;
      if (file === null) return;
      closeSync(file);
      file = null;
      rmSync(path, { force: true });
    },
  };
}
