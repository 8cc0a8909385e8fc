/**
 * How far apart two trees of code are: the fewest nodes that are added, taken away or renamed to make one of the other, where
 * whole branches come and go (Selkow, "The tree-to-tree editing problem", 1977). Branches that are the same cost nothing and are
 * not entered, equal beginnings and ends of a list of children are passed over, and what is left is compared pair by pair, up to a
 * limit; beyond it the lists count as exchanged whole, which is never less than the truth.
 */
import type { CodeNode } from './grammars.ts';

/** Pairs of nodes looked at for one distance. */
const maxPairs = 200_000;

export function treeDistance(a: CodeNode, b: CodeNode): number {
  let left = maxPairs;
  const sizeOf = (nodes: readonly CodeNode[]): number => nodes.reduce((sum, { size }) => sum + size, 0);

  function between(one: CodeNode, other: CodeNode): number {
    if (one.shape === other.shape) return 0;
    const renamed = one.kind === other.kind && one.text === other.text ? 0 : 1;
    const inside = lists(one.children, other.children);
    return Math.min(renamed + inside, one.size + other.size);
  }

  function lists(these: readonly CodeNode[], those: readonly CodeNode[]): number {
    let from = 0;
    let [m, n] = [these.length, those.length];
    while (from < m && from < n && these[from]!.shape === those[from]!.shape) from++;
    while (m > from && n > from && these[m - 1]!.shape === those[n - 1]!.shape) [m, n] = [m - 1, n - 1];
    const [rows, columns] = [these.slice(from, m), those.slice(from, n)];
    left -= rows.length * columns.length;
    if (left < 0) return sizeOf(rows) + sizeOf(columns);
    let before = [0];
    for (const column of columns) before.push(before.at(-1)! + column.size);
    for (const row of rows) {
      const now = [before[0]! + row.size];
      for (const [j, column] of columns.entries())
        now.push(
          Math.min(
            before[j + 1]! + row.size,
            now[j]! + column.size,
            before[j]! + (left < 0 ? row.size + column.size : between(row, column)),
          ),
        );
      before = now;
    }
    return before.at(-1)!;
  }

  return between(a, b);
}
