/**
 * A patch as its pieces, file by file: a unified diff (`+++ b/a.ts`, `@@`), the form that `apply_patch` tools take
 * (`*** Update File: a.ts`), either of them inside a shell's command, or blocks of SEARCH and REPLACE. Numbers of lines are not read;
 * agents get them wrong, and what stands around a change says where it is. Pure.
 */
export type Piece = { readonly from: string; readonly to: string };
export type Patched = {
  readonly path: string;
  readonly isNew: boolean;
  readonly isDeleted: boolean;
  /** Of a new file one piece, from nothing. */
  readonly pieces: readonly Piece[];
};

const isPatch = (text: string): boolean => /^\*\*\* Begin Patch/m.test(text) || /^\+\+\+ \S.*\n@@/m.test(text);

type Lines = { readonly from: string[]; readonly to: string[] };

/** A piece in the place of another; null: the text has no such piece. A patch need not know which line ends a file has. */
export function replaced(text: string, { from, to }: Piece, everywhere = false): string | null {
  const isWindows = !text.includes(from) && text.includes('\r\n');
  const [was, is] = isWindows ? [withWindowsEnds(from), withWindowsEnds(to)] : [from, to];
  const at = was === '' ? -1 : text.indexOf(was);
  if (at < 0) return null;
  return everywhere ? text.replaceAll(was, () => is) : text.slice(0, at) + is + text.slice(at + was.length);
}
const withWindowsEnds = (text: string): string => text.replace(/\r?\n/g, '\r\n');

/** Empty: it is no patch. `path` is that of a diff without headers. */
export function patchOf(given: string, mostFiles = 100, path?: string): Patched[] {
  const plain = given.replace(/\r\n/g, '\n').replace(/\n$/, '');
  const hasHeader = isPatch(plain);
  if (!hasHeader && (path === undefined || !/^@@/m.test(plain) || !/^[+-]/m.test(plain))) return [];
  const files: { readonly path: string; readonly isNew: boolean; isDeleted: boolean; readonly hunks: Lines[] }[] = [];
  const lines = (hasHeader ? plain : `--- a/${path}\n+++ b/${path}\n${plain}`).split('\n');
  const begin = (name: string, isNew: boolean, isDeleted: boolean) =>
    files.push({ path: name.trim(), isNew, isDeleted, hunks: isNew ? [{ from: [], to: [] }] : [] });
  for (const [i, line] of lines.entries()) {
    if (line.startsWith('*** End Patch')) break;
    const named = /^\*\*\* (Update|Add|Delete) File: (.+)$/.exec(line);
    if (named !== null || line.startsWith('+++ ')) {
      if (files.length >= mostFiles) break;
      if (named !== null) begin(named[2]!, named[1] === 'Add', named[1] === 'Delete');
      else if (lines[i - 1]?.startsWith('--- ')) {
        const [was, is] = [lines[i - 1]!.slice(4), line.slice(4)].map((one) => one.replace(/\t.*$/, '').trim());
        const isDeleted = is === '/dev/null';
        begin(isDeleted ? was!.replace(/^a\//, '') : is!.replace(/^b\//, ''), was === '/dev/null', isDeleted);
      }
      continue;
    }
    const file = files.at(-1);
    const isHeader = line.startsWith('--- ') && lines[i + 1]?.startsWith('+++ ');
    if (file === undefined || isHeader || /^(?:\*\*\* |\\ |-- $)/.test(line)) continue;
    // What is no line of a diff (another @@, `diff --git`, the end of a shell's text) ends what stands together.
    if (!/^[ +-]|^$/.test(line)) {
      if (!file.isNew) file.hunks.push({ from: [], to: [] });
      continue;
    }
    // `apply_patch` may leave out the first @@.
    if (file.hunks.length === 0) file.hunks.push({ from: [], to: [] });
    const { from, to } = file.hunks.at(-1)!;
    const said = line.slice(1);
    if (!line.startsWith('+')) from.push(said);
    if (!line.startsWith('-')) to.push(said);
  }
  return files.map(({ hunks, ...file }) => ({
    ...file,
    pieces: hunks
      .map(({ from, to }) => ({ from: from.join('\n'), to: `${to.join('\n')}${file.isNew ? '\n' : ''}` }))
      .filter((piece) => piece.from !== piece.to),
  }));
}

/** `<<<<<<< SEARCH`, `=======`, `>>>>>>> REPLACE` each on a line of its own, as often as there are changes. Empty: there are none. */
export function searchedPieces(text: string): Piece[] {
  const pieces: Piece[] = [];
  let block: { readonly from: string[]; readonly to: string[]; isBehind: boolean } | null = null;
  for (const line of text.replace(/\r\n/g, '\n').split('\n')) {
    if (/^(?:<{5,9}|-{5,9}) SEARCH>?\s*$/.test(line)) block = { from: [], to: [], isBehind: false };
    else if (block === null) continue;
    else if (/^(?:>{5,9}|\+{5,9}) REPLACE>?\s*$/.test(line)) {
      if (block.isBehind) pieces.push({ from: block.from.join('\n'), to: block.to.join('\n') });
      block = null;
    } else if (!block.isBehind && /^={5,9}\s*$/.test(line)) block.isBehind = true;
    // Where it is said to stand, above what is searched for.
    else if (!block.isBehind && /^-{5,9}\s*$/.test(line) && block.from.every((one) => /^:\w+:/.test(one)))
      block.from.length = 0;
    else (block.isBehind ? block.to : block.from).push(line);
  }
  return pieces;
}
