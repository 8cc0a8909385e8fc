/**
 * The changes to files that an agent made by calling tools, put together from the recording: what a file was before the first
 * change and after the last. Known are the shapes that most coding agents use: a path with the whole text (content, file_text,
 * new_contents), with a piece and what takes its place (old_string and new_string, old_str and new_str, search and
 * replace), alone or as a list, with a text for a line (insert_line); a patch (patch.ts); or a shell's command (shell-writes.ts).
 *
 * What a file held is taken from what a tool that reads returned for its path. Where that was not recorded, or a piece does not stand
 * in it, the pieces stand for the file: before the changes, and after them. Calls that may have changed files in a way that nobody can
 * read are counted.
 */
import type { Turn } from '../collect/turn.ts';
import { isObject, type JsonObject, listOf, parseUntrusted } from '../collect/untrusted.ts';
import { createFiles, type FileChange } from './known-files.ts';
import { searchedPieces } from './patch.ts';
import { followShell } from './shell-writes.ts';
import { answeredByError, type JudgedCall, judgedCalls, repeatedForNothing } from './tool-use.ts';

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
const shells = /bash|shell|terminal|exec/i;
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

/** Of what a tool says beside a file: where it left something out. */
const isShortened = (text: string): boolean =>
  text
    .split('\n')
    .some((line) => line.length < 300 && /^\s*(?:[[<(…]|\.\.\.).*\b(?:truncated|omitted|clipped)\b/i.test(line));
/** What says that only a part was asked for. */
const partly = /range|offset|limit|start|end_?line|lines/i;

/** What a command printed, without what tools that run commands put around it. */
function printedBy(result: string): string {
  const value = parseUntrusted(result);
  const text = isObject(value) ? (textIn(value, ['output', 'stdout']) ?? result) : result;
  const framed = /^(?:Exit code: .*\n(?:.*\n){0,3}?Output:\n|<returncode>.*\n<output>\n?)/.exec(text);
  return text
    .slice(framed?.[0].length ?? 0)
    .replace(/\n?<\/output>\s*$/, '')
    .replace(/(?:\n\[(?:The command|Current working|Python interp|Command finished)[^\]\n]*\]){1,4}\s*$/, '\n');
}

/** A shell's command: one text, or its words. */
function commandIn(given: Given, isShell: boolean): string | readonly string[] | null {
  const words = listOf(given.command ?? given.cmd).filter((word) => typeof word === 'string');
  const text = textIn(given, ['command', 'cmd', 'CommandLine', ...(isShell ? ['input'] : [])]);
  return words.length > 0 ? words : text;
}

/** `unread`: calls that may have changed what nobody can read. */
export type CodeEdits = { readonly changes: readonly FileChange[]; readonly unread: number };

export function codeEdits(turns: readonly Turn[]): CodeEdits {
  const files = createFiles();
  let unread = 0;
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
    else if (whole === null) return false;
    else if (hasGaps(whole)) files.alter(path, null);
    else files.write(path, whole);
    return true;
  };

  const follow = ({ call, result, worth, fault }: JudgedCall): void => {
    const parsed = typeof call?.arguments === 'string' ? parseUntrusted(call.arguments) : call?.arguments;
    const given: Given = isObject(parsed) ? parsed : { input: call?.arguments };
    const command = commandIn(given, call?.type === 'custom' && shells.test(call.name ?? ''));
    // A call that failed changed nothing; which of a shell's commands failed nobody can tell.
    const isDone = worth >= 0.6;
    const isRun = isDone || (fault === repeatedForNothing && result !== null);
    if (command !== null && (isRun || fault === answeredByError)) {
      const folder = textIn(given, ['workdir', 'cwd', 'Cwd', 'working_directory']) ?? '';
      const shown = followShell(command, files, folder, isRun);
      if (isRun && shown !== null && result !== null && result.length <= maxCharacters && !isShortened(result))
        files.read(shown, withoutNumbers(printedBy(result)), true);
    }
    if (!isDone) return;
    const path = textIn(given, pathNames);
    if (files.patch(textIn(given, patchNames) ?? '', isPath(path) ? path : undefined)) return;
    const listed = [given.edits, given.files, given.replacements].flatMap(listOf).filter(isObject).slice(0, 100);
    const isEdit = [given, ...listed]
      .map((one) => {
        const own = textIn(one, pathNames) ?? path;
        return isPath(own) && edit(one, own);
      })
      .includes(true);
    if (isEdit || !isPath(path) || result === null || result.length > maxCharacters) return;
    const isWhole = !isShortened(result) && !Object.keys(given).some((name) => partly.test(name));
    if (reads.test(textIn(given, ['command']) ?? call?.name ?? '')) files.read(path, withoutNumbers(result), isWhole);
  };

  for (const call of [...judgedCalls(turns).values()].flat()) {
    if (call.call === null) continue;
    const doubts = files.doubts();
    follow(call);
    if (files.doubts() > doubts) unread++;
  }
  return { changes: files.changes(), unread };
}
