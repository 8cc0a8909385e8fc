/**
 * The changes to files that an agent made by calling tools, put together from the recording: what a file was before the first
 * change and after the last. Known are the shapes that most coding agents use: a path with the whole text (content, file_text,
 * new_contents), with a piece and what takes its place (old_string and new_string, old_str and new_str, search and
 * replace), alone or as a list, with a text for a line (insert_line); or a patch (patch.ts), which may stand in a shell's command.
 *
 * What a file held is taken from what a tool that reads returned for its path. Where that was not recorded, or a piece does not stand
 * in it, the pieces stand for the file: before the changes, and after them. Files that a shell wrote otherwise are not seen.
 */
import type { Turn } from '../collect/turn.ts';
import { isObject, type JsonObject, listOf, parseUntrusted } from '../collect/untrusted.ts';
import { type Piece, patchOf, replaced, searchedPieces } from './patch.ts';
import { judgedCalls } from './tool-use.ts';

export type FileChange = {
  readonly path: string;
  readonly before: string;
  readonly after: string;
  readonly isNew: boolean;
};

/** That were changed, and that are known. */
const [maxFiles, maxKnown] = [100, 500];
const maxCharacters = 200_000;

type Given = Readonly<JsonObject>;
const textIn = (value: Given, names: readonly string[]): string | null => {
  for (const name of names) {
    const found = value[name];
    if (typeof found === 'string' && found.length <= maxCharacters) return found;
  }
  return null;
};
const patchNames = ['patch', 'diff', 'input'];
const pathNames = ['path', 'file_path', 'filePath', 'filename', 'file', 'target_file'];
const wholeNames = ['content', 'contents', 'file_text', 'new_contents', 'code_edit'];
const oldNames = ['old_string', 'old_str', 'oldString', 'oldText', 'old_text', 'search'];
const newNames = ['new_string', 'new_str', 'newString', 'newText', 'new_text', 'replace'];
const insertNames = ['insert_text', 'new_str', 'text'];

/** A text with gaps in it, for a model to fill in. */
const hasGaps = (text: string): boolean => /\.\.\. ?existing code ?\.\.\./i.test(text);
/** Tools, or commands of tools, whose result is what the file holds. */
const reads = /read|view|open|show|get|load|fetch|retrieve|(?:^|[^a-z])cat(?![a-z])/i;

/** Line numbers that a tool put before each line (`12\tcode`, `12: code`) are not the file's, nor is what it says above and below. */
function withoutNumbers(text: string): string {
  const lines = text.split('\n');
  const numbered = /^\s*\d+(?:\t|: |→|\|)/;
  const isNumbered = (line: string) => numbered.test(line);
  const [first, last] = [lines.findIndex(isNumbered), lines.findLastIndex(isNumbered)];
  const listed = lines.slice(first, last + 1);
  if (first < 0 || listed.length <= lines.length / 2 || !listed.every((line) => line === '' || isNumbered(line)))
    return text;
  const end = last < lines.length - 1 ? '\n' : '';
  return listed.map((line) => line.replace(numbered, '')).join('\n') + end;
}

type Known = { readonly path: string; before: string; after: string; readonly isNew: boolean; isChanged: boolean };

/** What is known of files, call by call. */
function createFiles() {
  const files: Known[] = [];
  const byPath = new Map<string, Known>();
  let changed = 0;
  /** One tool says /repo/a.ts, another one a.ts. */
  const find = (path: string): Known | undefined => {
    const known = byPath.get(path);
    if (known !== undefined) return known;
    const same = files.filter((one) => one.path.endsWith(`/${path}`) || path.endsWith(`/${one.path}`));
    return same.length === 1 ? same[0] : undefined;
  };
  const add = (path: string, text: string, isNew: boolean): Known | undefined => {
    if (files.length >= maxKnown) return undefined;
    const known = { path, before: text, after: text, isNew, isChanged: false };
    files.push(known);
    byPath.set(path, known);
    return known;
  };
  const change = (known: Known | undefined, after: string): void => {
    if (known === undefined || (!known.isChanged && changed >= maxFiles)) return;
    if (!known.isChanged) changed++;
    known.isChanged = true;
    known.after = after;
  };
  return {
    changes: (): FileChange[] => files.filter((one) => one.isChanged),
    read(path: string, text: string): void {
      if (find(path) === undefined) add(path, text, false);
    },
    write(path: string, text: string): void {
      change(find(path) ?? add(path, '', true), text);
    },
    replace(path: string, piece: Piece, everywhere = false): void {
      const known = find(path);
      const after = known && replaced(known.after, piece, everywhere);
      if (typeof after === 'string') change(known, after);
      else if (known === undefined) change(add(path, piece.from, piece.from === ''), piece.to);
      else {
        if (piece.from !== '') known.before += `\n${piece.from}`;
        change(known, known.after === '' ? piece.to : `${known.after}\n${piece.to}`);
      }
    },
    insert(path: string, line: number, text: string): void {
      const known = find(path) ?? add(path, '', false);
      const lines = known?.after.split('\n') ?? [];
      const at = known?.after === '' ? lines.length : line;
      change(known, [...lines.slice(0, at), text.replace(/\n$/, ''), ...lines.slice(at)].join('\n'));
    },
    remove(path: string): void {
      const known = find(path);
      if (known?.isChanged) changed--;
      // What was made and taken away again is no change; of any other nothing is left to look at.
      if (known !== undefined) known.isChanged = false;
    },
  };
}

/** The words of a call that may be a patch: an argument of that name, a shell's command, all that a tool without JSON is given. */
const patchIn = (given: Given): string | null => {
  const { command, cmd } = given;
  const words = listOf(command ?? cmd).filter((word) => typeof word === 'string');
  return textIn(given, patchNames) ?? (words.length > 0 ? words.at(-1)! : textIn(given, ['command', 'cmd']));
};

export function codeEdits(turns: readonly Turn[]): FileChange[] {
  const files = createFiles();
  const isPath = (path: string | null): path is string => path !== null && path !== '' && path.length <= 1000;

  /** Whether it says a change. */
  const edit = (given: Given, path: string): boolean => {
    const whole = textIn(given, wholeNames);
    const blocks = searchedPieces(textIn(given, patchNames) ?? whole ?? '');
    for (const piece of blocks) files.replace(path, piece);
    if (blocks.length > 0) return true;
    const [from, to] = [textIn(given, oldNames), textIn(given, newNames)];
    const line = given.insert_line;
    if (from !== null && to !== null) {
      const everywhere = given.replace_all === true || given.replaceAll === true;
      files.replace(path, { from, to }, everywhere || Number(given.expected_replacements) > 1);
    } else if (typeof line === 'number' && line >= 0) files.insert(path, line, textIn(given, insertNames) ?? '');
    else if (whole !== null && !hasGaps(whole)) files.write(path, whole);
    else return whole !== null;
    return true;
  };

  for (const { call, result, worth } of [...judgedCalls(turns).values()].flat()) {
    if (call === null || worth < 0.6) continue; // a call that failed changed nothing
    const parsed = typeof call.arguments === 'string' ? parseUntrusted(call.arguments) : call.arguments;
    const given = isObject(parsed) ? parsed : { input: call.arguments };
    const path = textIn(given, pathNames);
    const patched = patchOf(patchIn(given) ?? '', maxFiles, isPath(path) ? path : undefined);
    for (const { path: name, isNew, isDeleted, pieces } of patched) {
      if (!isPath(name)) continue;
      if (isDeleted) files.remove(name);
      for (const piece of isDeleted ? [] : pieces)
        if (isNew) files.write(name, piece.to);
        else files.replace(name, piece);
    }
    if (patched.length > 0) continue;
    const listed = [given.edits, given.files, given.replacements].flatMap(listOf).filter(isObject).slice(0, 100);
    const isEdit = [given, ...listed]
      .map((one) => {
        const own = textIn(one, pathNames) ?? path;
        return isPath(own) && edit(one, own);
      })
      .includes(true);
    if (isEdit || !isPath(path) || result === null || result.length > maxCharacters) continue;
    if (reads.test(textIn(given, ['command']) ?? call.name ?? '')) files.read(path, withoutNumbers(result));
  }
  return files.changes();
}
