/**
 * What is known of an agent's files while its calls are followed: what each held before the first change and what it holds now, as far
 * as the recording tells. What cannot be told is said to be so and never guessed: a file is `unsure` when something may have changed
 * it or only pieces of it were seen, and lost when nobody can tell what it holds.
 */
import { codeLanguage } from './grammars.ts';
import { type Piece, patchOf, replaced } from './patch.ts';
import type { ShellFiles } from './shell-writes.ts';

export type FileChange = {
  readonly path: string;
  readonly before: string;
  readonly after: string;
  readonly isNew: boolean;
};

/** That were changed, and that are known. */
const [maxFiles, maxKnown] = [100, 500];
const maxCharacters = 200_000;
/** Characters looked through for all calls of a conversation together; what comes later is not followed. */
const maxWork = 100_000_000;

type Known = {
  path: string;
  before: string;
  after: string;
  readonly isNew: boolean;
  isChanged: boolean;
  /** All of it is known, line by line. */
  isSure: boolean;
  isLost: boolean;
  /** It became longer than is followed, and stays lost. */
  isOver: boolean;
};

/** What a program that may write a file has in it; one that only prints has not. */
const writes =
  /(?<!std(?:out|err)\.)\bwrite(?:_text|_bytes|lines|File|FileSync|Sync)?\s*\(|\bopen\([^)\n]{0,200}['"](?:[wax]|r\+)|\bappendFile/;
const isAbsolute = (path: string): boolean => /^[/~]/.test(path);
const isCode = (path: string): boolean => codeLanguage(path.slice(path.lastIndexOf('.') + 1)) !== null;

export type KnownFiles = Omit<ShellFiles, 'patch'> & {
  /** Whole, or a part of it. */
  read(path: string, text: string, isWhole: boolean): void;
  replace(path: string, piece: Piece, everywhere?: boolean): void;
  insert(path: string, line: number, text: string): void;
  /** Whether it is one. */
  patch(text: string | null, path?: string): boolean;
  changes(): FileChange[];
  /** How often something may have been changed that cannot be read. */
  doubts(): number;
};

export function createFiles(): KnownFiles {
  const files: Known[] = [];
  const byPath = new Map<string, Known>();
  let changed = 0;
  let doubts = 0;
  let work = 0;
  let isCommitted = false;
  const spend = (characters: number): boolean => {
    work += characters;
    return work <= maxWork;
  };

  /** One tool says /repo/a.ts, another one a.ts; src/a.ts is another file than that. */
  const find = (path: string): Known | undefined => {
    const known = byPath.get(path);
    if (known !== undefined || !spend(files.length * 20)) return known;
    const same = files.filter((one) =>
      isAbsolute(path)
        ? !isAbsolute(one.path) && path.endsWith(`/${one.path}`)
        : isAbsolute(one.path) && one.path.endsWith(`/${path}`),
    );
    return same.length === 1 ? same[0] : undefined;
  };
  const add = (path: string, text: string, isNew: boolean, isSure: boolean): Known | undefined => {
    if (files.length >= maxKnown || work > maxWork) return undefined;
    const known = { path, before: text, after: text, isNew, isChanged: false, isSure, isLost: false, isOver: false };
    files.push(known);
    byPath.set(path, known);
    return known;
  };
  const lose = (known: Known): void => {
    known.isLost = true;
    doubts++;
  };
  const change = (known: Known | undefined, after: string): void => {
    if (known === undefined || known.isOver || (!known.isChanged && changed >= maxFiles)) return;
    if (after.length > maxCharacters || known.before.length > maxCharacters) {
      known.isOver = true;
      lose(known);
      return;
    }
    if (!known.isChanged) changed++;
    known.isChanged = true;
    known.isLost = false;
    known.after = after;
  };
  /** As if nobody had changed it. */
  const forget = (known: Known, after: string): void => {
    if (known.isChanged) changed--;
    known.isChanged = false;
    known.isLost = false;
    known.after = after;
  };
  const within = (folder: string): Known[] => {
    const known = find(folder);
    if (known !== undefined) return [known];
    if (!spend(files.length * 20)) return [];
    return folder === '.' ? files : files.filter(({ path }) => path.startsWith(`${folder}/`));
  };

  const known: KnownFiles = {
    changes: () => files.filter((one) => one.isChanged && !one.isLost && one.before !== one.after),
    doubts: () => doubts,

    held(path, times) {
      const one = find(path);
      if (one === undefined || !one.isSure || one.isLost || !spend(one.after.length * times)) return null;
      return one.after;
    },

    read(path, text, isWhole) {
      if (find(path) === undefined) add(path, text, false, isWhole);
    },

    write(path, text) {
      const one = find(path);
      if (text === null) {
        if (one !== undefined) lose(one);
        else if (isCode(path)) doubts++;
        return;
      }
      const made = one ?? add(path, '', true, true);
      if (made === undefined) return;
      change(made, text);
      made.isSure = true;
    },

    append(path, text) {
      const one = text === null ? undefined : (find(path) ?? add(path, '', false, false));
      if (text === null) known.alter(path, null);
      if (one === undefined) return;
      // Tools that read leave out the line end that a file has.
      const isOpen = !one.isNew && [one.before, one.after].every((text) => text !== '' && !text.endsWith('\n'));
      if (one.isLost || !spend(one.after.length)) lose(one);
      else change(one, `${one.after}${isOpen ? '\n' : ''}${text}`);
    },

    alter(path, text) {
      if (text !== null && path !== null) change(find(path), text);
      else {
        const all = within(path ?? '.');
        for (const one of all) one.isSure = false;
        if (path === null || all.length > 0 || isCode(path)) doubts++;
      }
    },

    replace(path, piece, everywhere = false) {
      const one = find(path);
      if (one?.isLost && !one.isOver) [one.before, one.after, one.isSure] = ['', '', false];
      const isFollowed = one !== undefined && spend(one.after.length);
      const after = isFollowed ? replaced(one.after, piece, everywhere) : null;
      if (one !== undefined && !isFollowed) lose(one);
      else if (one !== undefined && after !== null) change(one, after);
      else if (one === undefined) {
        const isNew = piece.from === '';
        change(add(path, piece.from, isNew, isNew), piece.to);
      } else {
        if (piece.from !== '') one.before += one.before === '' ? piece.from : `\n${piece.from}`;
        one.isSure = false;
        change(one, one.after === '' ? piece.to : `${one.after}\n${piece.to}`);
      }
    },

    insert(path, line, text) {
      const one = find(path) ?? add(path, '', false, false);
      const lines = one?.after.split('\n') ?? [];
      const at = one?.after === '' ? lines.length : line;
      change(one, [...lines.slice(0, at), text.replace(/\n$/, ''), ...lines.slice(at)].join('\n'));
    },

    remove(path) {
      // What was made and taken away again is no change; of any other nothing is left to look at.
      for (const one of within(path)) forget(one, '');
    },

    move(from, to) {
      const [source, target] = [find(from), find(to)];
      if (source === undefined) {
        if (target !== undefined) lose(target);
      } else if (target === undefined || target === source) {
        byPath.delete(source.path);
        source.path = to;
        byPath.set(to, source);
      } else {
        if (source.isLost) lose(target);
        else change(target, source.after);
        target.isSure = source.isSure;
        forget(source, '');
      }
    },

    restore(path) {
      for (const one of within(path)) {
        if (one.isNew) continue;
        if (isCommitted) lose(one);
        else forget(one, one.before);
      }
    },

    commit() {
      isCommitted = true;
    },

    patch(text, path) {
      if (text === null) {
        known.alter(null, null);
        return false;
      }
      const patched = patchOf(text, maxFiles, path);
      for (const { path: name, isNew, isDeleted, pieces } of patched) {
        if (name === '' || name.length > 1000) continue;
        if (isDeleted) known.remove(name);
        for (const piece of isDeleted ? [] : pieces)
          if (isNew) known.write(name, piece.to);
          else known.replace(name, piece);
      }
      return patched.length > 0;
    },

    program(text) {
      if (!writes.test(text)) return;
      doubts++;
      const named = new Set(text.match(/[\w-]+\.\w+/g));
      for (const one of files) if (named.has(one.path.slice(one.path.lastIndexOf('/') + 1))) one.isSure = false;
    },
  };
  return known;
}
