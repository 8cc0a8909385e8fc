/**
 * The changes to files that an agent made by calling tools, put together from the recording: what a file was before the first
 * change and after the last. Known are the shapes that most coding agents use: a path with the whole text (content, file_text,
 * new_contents), and a path with a piece and what takes its place (old_string and new_string, old_str and new_str, search and
 * replace), alone or as a list of edits, or a patch (patch.ts). What a file held is taken from what a tool returned for its path; where that was not
 * recorded, the piece stands for the file.
 */
import type { Turn } from '../collect/turn.ts';
import { isObject, listOf, parseUntrusted } from '../collect/untrusted.ts';
import { type Piece, patchOf } from './patch.ts';
import { judgedCalls } from './tool-use.ts';

export type FileChange = {
  readonly path: string;
  readonly before: string;
  readonly after: string;
  readonly isNew: boolean;
};

const maxFiles = 100;
const maxCharacters = 200_000;

const textIn = (value: Readonly<Record<string, unknown>>, names: readonly string[]): string | null => {
  for (const name of names) {
    const found = value[name];
    if (typeof found === 'string' && found.length <= maxCharacters) return found;
  }
  return null;
};
const patchNames = ['patch', 'diff', 'input'];
const pathNames = ['path', 'file_path', 'filePath', 'filename', 'file', 'target_file'];
const wholeNames = ['content', 'contents', 'file_text', 'new_contents', 'code_edit'];
const oldNames = ['old_string', 'old_str', 'oldText', 'old_text', 'search'];
const newNames = ['new_string', 'new_str', 'newText', 'new_text', 'replace'];

/** Line numbers that a tool put before each line (`12\tcode`, `12: code`) are not the file's. */
const withoutNumbers = (text: string): string => {
  const lines = text.split('\n');
  const numbered = /^\s*\d+(?:\t|: |→|\|)/;
  return lines.every((line) => line === '' || numbered.test(line))
    ? lines.map((line) => line.replace(numbered, '')).join('\n')
    : text;
};

export function codeEdits(turns: readonly Turn[]): FileChange[] {
  const files = new Map<string, string>(); // as far as it is known
  const changes = new Map<string, FileChange>();
  const change = (path: string, before: string, after: string, isNew: boolean): void => {
    const known = changes.get(path);
    if (known === undefined && changes.size >= maxFiles) return;
    changes.set(path, known === undefined ? { path, before, after, isNew } : { ...known, after });
  };
  const replace = (path: string, pieces: readonly Piece[], isNewFile = false): void => {
    for (const { from, to } of pieces) {
      const known = files.get(path);
      const at = known === undefined || from === '' ? -1 : known.indexOf(from);
      if (known !== undefined && at >= 0) {
        const after = known.slice(0, at) + to + known.slice(at + from.length);
        change(path, known, after, false);
        files.set(path, after);
      } else {
        const earlier = changes.get(path);
        const isNew = from === '' && known === undefined;
        change(path, from, earlier === undefined ? to : `${earlier.after}\n${to}`, isNew);
        if (isNewFile && isNew) files.set(path, to);
      }
    }
  };
  for (const { call, result, worth } of [...judgedCalls(turns).values()].flat()) {
    const given =
      call === null ? null : typeof call.arguments === 'string' ? parseUntrusted(call.arguments) : call.arguments;
    if (!isObject(given) || worth < 0.6) continue; // a call that failed changed nothing
    const patched = patchOf(textIn(given, patchNames) ?? '', maxFiles);
    for (const { path, isNew, pieces } of patched) if (path.length <= 1000) replace(path, pieces, isNew);
    const path = textIn(given, pathNames);
    if (patched.length > 0 || path === null || path.length > 1000) continue;
    const whole = textIn(given, wholeNames);
    const edits = [given, ...listOf(given.edits).filter(isObject).slice(0, 100)].flatMap((one) => {
      const [from, to] = [textIn(one, oldNames), textIn(one, newNames)];
      return from === null || to === null ? [] : [{ from, to }];
    });
    if (edits.length > 0) replace(path, edits);
    else if (whole !== null) {
      const known = files.get(path);
      change(path, known ?? '', whole, known === undefined);
      files.set(path, whole);
    } else if (result !== null && result.length <= maxCharacters && !files.has(path))
      files.set(path, withoutNumbers(result));
  }
  return [...changes.values()];
}
