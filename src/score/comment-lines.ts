/**
 * What comments say, line by line: their marks, indents and line ends are form. A line that stood in a comment before is no new one,
 * wherever it stands now. Reads code with docstrings as comments (bare-code.ts).
 */
import { isComment } from './bare-code.ts';
import type { CodeNode } from './grammars.ts';

/** Of a line without white space around it. */
const marks = /^(?:[rRuU]?(?:"""|'''|")|\/\*+!?|\/{2,}!?|\*(?!\*?\/)|#+!?)|(?:"""|'''|(?<!\*)\*+\/)$/g;

type Commented = { readonly root: CodeNode; readonly text: string };

function linesOf({ root, text }: Commented): string[] {
  const lines: string[] = [];
  const find = (node: CodeNode): void => {
    if (!isComment(node)) for (const child of node.children) find(child);
    else
      for (const line of text.slice(node.start, node.end).split('\n')) {
        const said = line.trim().replace(marks, '').trim();
        if (said !== '') lines.push(said);
      }
  };
  find(root);
  return lines;
}

/** Lines of comments of `after` that `before` had none of. */
export function addedCommentLines(before: Commented, after: Commented): string[] {
  const known = new Map<string, number>();
  for (const line of linesOf(before)) known.set(line, (known.get(line) ?? 0) + 1);
  return linesOf(after).filter((line) => {
    const count = known.get(line) ?? 0;
    known.set(line, count - 1);
    return count <= 0;
  });
}
