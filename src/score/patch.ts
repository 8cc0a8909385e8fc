/**
 * A patch as its pieces, file by file: a unified diff (`+++ b/a.ts`, `@@`), or the form that `apply_patch` tools take
 * (`*** Update File: a.ts`). Numbers of lines are not read; agents get them wrong, and what stands around a change says where it is. Pure.
 */
export type Piece = { readonly from: string; readonly to: string };
export type Patched = {
  readonly path: string;
  readonly isNew: boolean;
  /** Of a new file one piece, from nothing. */
  readonly pieces: readonly Piece[];
};

const isPatch = (text: string): boolean => /^\*\*\* Begin Patch/m.test(text) || /^\+\+\+ \S.*\n@@/m.test(text);

type Lines = { readonly from: string[]; readonly to: string[] };

/** Empty: it is no patch. */
export function patchOf(text: string, mostFiles = 100): Patched[] {
  if (!isPatch(text)) return [];
  const files: { readonly path: string; readonly isNew: boolean; readonly hunks: Lines[] }[] = [];
  const lines = text.replace(/\r\n/g, '\n').replace(/\n$/, '').split('\n');
  const begin = (path: string, isNew: boolean) =>
    files.push({ path: path.trim(), isNew, hunks: isNew ? [{ from: [], to: [] }] : [] });
  for (const [i, line] of lines.entries()) {
    const named = /^\*\*\* (Update|Add|Delete) File: (.+)$/.exec(line);
    if (named !== null || line.startsWith('+++ ')) {
      if (files.length >= mostFiles) break;
      if (named !== null) begin(named[2]!, named[1] === 'Add');
      else if (lines[i - 1]?.startsWith('--- '))
        begin(line.slice(4).replace(/^b\//, '').replace(/\t.*$/, ''), lines[i - 1]!.startsWith('--- /dev/null'));
      continue;
    }
    const file = files.at(-1);
    const isHeader = line.startsWith('--- ') && lines[i + 1]?.startsWith('+++ ');
    if (file === undefined || isHeader || /^(?:\*\*\* |\\ |diff --git |index |(?:new|deleted) file mode )/.test(line))
      continue;
    if (line.startsWith('@@')) {
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
  return files.map(({ path, isNew, hunks }) => ({
    ...{ path, isNew },
    pieces: hunks
      .map(({ from, to }) => ({ from: from.join('\n'), to: `${to.join('\n')}${isNew ? '\n' : ''}` }))
      .filter((piece) => piece.from !== piece.to),
  }));
}
