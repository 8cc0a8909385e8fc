/**
 * Imports that stand next to each other, and the names in one, say the same in any order, and formatters sort them: Python's, Go's,
 * Java's, Rust's `use` and `mod`, those of JavaScript that name something. An import for what it does alone (`import './a.css'`) stays
 * where it is, as does what an attribute belongs to, and nothing is sorted across either. Reads code as bare-code.ts leaves it.
 */
import { wordsOf } from './bare-code.ts';
import { type CodeNode, codeNode } from './grammars.ts';
import { inOrder } from './restyled.ts';

function isImport(node: CodeNode, before: CodeNode | undefined): boolean {
  switch (node.kind) {
    case 'import_statement': // of Python, or of JavaScript
      return node.children.some(({ kind }) => /^(?:dotted_name|aliased_import|import_clause)$/.test(kind));
    case 'import_from_statement':
    case 'import_declaration':
    case 'import_spec':
      return true;
    case 'use_declaration':
      return before?.kind !== 'attribute_item';
    case 'mod_item':
      return before?.kind !== 'attribute_item' && node.children.at(-1)?.kind === ';';
    default:
      return false;
  }
}

/** Where its children stand that may stand in any order, run by run. */
function runsIn({ kind, children }: CodeNode): readonly (readonly number[])[] {
  const placesOf = (is: (child: CodeNode, i: number) => boolean) =>
    children.flatMap((child, i) => (is(child, i) ? [i] : []));
  const isName = ({ kind: name }: CodeNode) => name === 'dotted_name' || name === 'aliased_import';
  switch (kind) {
    case 'program':
    case 'module':
    case 'source_file':
    case 'import_spec_list': {
      const runs: number[][] = [];
      for (const i of placesOf((child, k) => isImport(child, children[k - 1])))
        if (runs.at(-1)?.at(-1) === i - 1) runs.at(-1)!.push(i);
        else runs.push([i]);
      return runs;
    }
    case 'named_imports':
      return [placesOf((child) => child.kind === 'import_specifier')];
    case 'import_statement':
      return [placesOf(isName)];
    case 'import_from_statement': {
      const behind = children.findIndex((child) => child.kind === 'import');
      return [placesOf((child, i) => i > behind && isName(child))];
    }
    case 'use_list':
      return [placesOf((child) => !/^[{},]$/.test(child.kind))];
    default:
      return [];
  }
}

const holdsImports = /^(?:program|module|source_file|import_|named_imports|use_|scoped_use_list)/;
/** From where it imports, and only then what: so one with another name more stays in its place. */
const orderOf = (node: CodeNode): string =>
  `${node.children.findLast(({ kind }) => kind === 'string')?.text ?? ''} ${wordsOf(node)}`;

/** With imports sorted, and the names in each. */
export function withSortedImports(node: CodeNode): CodeNode {
  if (!holdsImports.test(node.kind)) return node;
  const children = node.children.map(withSortedImports);
  for (const run of runsIn({ ...node, children })) {
    const sorted = run.map((i) => children[i]!).sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));
    for (const [k, i] of run.entries()) children[i] = sorted[k]!;
  }
  return children.every((child, i) => child === node.children[i])
    ? node
    : codeNode(node.kind, node.text, children, node.start, node.end);
}

/** Of both texts, imports that say the same, and stand in another order in the second one or name their names in another: how many. */
export function movedImports(before: CodeNode, after: CodeNode): number {
  const importsOf = (node: CodeNode): CodeNode[] =>
    runsIn(node)
      .flat()
      .map((i) => node.children[i]!)
      .flatMap((one) => {
        const list = one.children.find(({ kind }) => kind === 'import_spec_list');
        return list === undefined ? [one] : importsOf(list);
      });
  const was = importsOf(before);
  const places = new Map<string, number[]>();
  for (const [i, one] of was.entries()) {
    const { shape } = withSortedImports(one);
    places.set(shape, [...(places.get(shape) ?? []), i]);
  }
  const pairs: (readonly [number, number])[] = [];
  let renamed = 0;
  for (const [j, one] of importsOf(after).entries()) {
    const i = places.get(withSortedImports(one).shape)?.shift();
    if (i === undefined) continue;
    if (was[i]!.shape === one.shape) pairs.push([i, j]);
    else renamed++;
  }
  return renamed + pairs.length - inOrder(pairs).length;
}
