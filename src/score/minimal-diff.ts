/**
 * Minimal change (S7): how much of what an agent changed in code was needed. Files before and after are compared as trees
 * (tree-distance.ts); what is unneeded is told apart and priced in nodes of the tree:
 *
 *   scaffolding    statements that only print, log or leave a note (console.log, print, dbg!, TODO …)
 *   stray files    new files that nobody asked for by name and that are called like leavings (tmp, debug, backup, notes …)
 *   reformatting   lines that changed and mean the same; beside a change that means something, those that differ by their spaces or
 *                  a semicolon, but not by their indent alone, which a block around them needs
 *   comments       comments that were added
 *
 *     value = smallest / (changed + prices),   at most 1
 *
 * `smallest` is the distance to the change that is known to do: what `accepted` returns for a conversation, e.g. the patch that the
 * tests or a reviewer took. Without it, it is what is left of the change when scaffolding and stray files are taken out, so only
 * those and the other two can cost. Whether the change works is for outcomes. Unmeasured: no code was changed.
 */
import { codeEdits, type FileChange } from './code-edits.ts';
import { type CodeNode, codeLanguage, parseCode, shapeOf } from './grammars.ts';
import { type Measured, type Scorer, type ScorerInput, unmeasured } from './scorer.ts';
import { storyOf } from './story.ts';
import { treeDistance } from './tree-distance.ts';

export type MinimalDiffOptions = {
  /** Files as they are after the smallest change that does, by path; null: none is known. */
  readonly accepted?: (input: ScorerInput) => Readonly<Record<string, string>> | null;
  /** Part of a changed node that a node of each costs. */
  readonly prices?: Partial<typeof usualPrices>;
};

const usualPrices = { scaffolding: 1, strayFiles: 1, reformatting: 0.5, comments: 0.5 };
export type DiffCosts = { -readonly [Name in keyof typeof usualPrices]: number };

const prints =
  /^(?:console\.\w+|print(?:ln!)?|eprintln!|dbg!|log\.(?:Print|debug)\w*|fmt\.Print\w*|System\.(?:out|err)\.\w+|debugger|breakpoint|pdb\.set_trace|logger?\.debug)(?!\w)/;
const notes = /\b(?:TODO|FIXME|XXX|HACK)\b/;
/** Of the name of a file. */
const stray =
  /(?:^|[^a-z])(?:tmp|temp|debug|backup|bak|orig|old|copy|scratch|notes?|summary|changes)(?:[^a-z]|$)|\.log$/i;

const isComment = ({ kind }: CodeNode): boolean => kind.includes('comment');
const isStatement = ({ kind }: CodeNode): boolean =>
  kind === 'expression_statement' || kind.endsWith('_statement') || kind === 'debugger_statement';
const wordsOf = (node: CodeNode): string =>
  node.children.length === 0 ? node.text : node.children.map(wordsOf).join('');

/** The tree without its comments; null: it is one. */
function bare(node: CodeNode): CodeNode | null {
  if (isComment(node)) return null;
  const children = node.children.flatMap((child) => bare(child) ?? []);
  const size = children.reduce((sum, child) => sum + child.size, 1);
  return { ...node, children, size, shape: shapeOf(node.kind, node.text, children) };
}

/** Every node, once for each time it stands there. */
function* all(node: CodeNode): Generator<CodeNode> {
  yield node;
  for (const child of node.children) yield* all(child);
}

/** Nodes of those that `after` has more of than `before`. */
function addedNodes(before: CodeNode, after: CodeNode, is: (node: CodeNode) => boolean): number {
  const known = new Map<string, number>();
  for (const node of all(before)) if (is(node)) known.set(node.shape, (known.get(node.shape) ?? 0) + 1);
  let added = 0;
  for (const node of all(after)) {
    if (!is(node)) continue;
    const count = known.get(node.shape) ?? 0;
    if (count > 0) known.set(node.shape, count - 1);
    else added += node.size;
  }
  return added;
}

const isScaffolding = (node: CodeNode): boolean =>
  isComment(node) ? notes.test(node.text) : isStatement(node) && prints.test(wordsOf(node));
const isPlainComment = (node: CodeNode): boolean => isComment(node) && !notes.test(node.text);

/** Lines that are in one text and not in the other. */
function changedLines(before: string, after: string): number {
  const known = new Set(before.split('\n'));
  return after.split('\n').filter((line) => !known.has(line)).length;
}

/** A comma behind what was last is needed by what comes after it, and another indent by what stands around it. */
const asSaid = (line: string): string => line.trim().replace(/,$/, '');
const quoted = /(["'`])(?:\\.|(?!\1).)*\1/g;
/** Spaces inside a text mean something. */
const asMeant = (line: string): string =>
  asSaid(line)
    .replace(quoted, (text) => text.replaceAll(' ', '\0'))
    .replaceAll(/[ \t]+/g, '')
    .replace(/;$/, '');

/** Of the lines that changed beside what was needed, those that say the same in another form: spaces, semicolons. */
function restyledLines(before: string, after: string): number {
  const [was, is] = [before, after].map((text) => text.split('\n').filter((line) => line.trim() !== ''));
  const [saidBefore, saidAfter] = [new Set(was!.map(asSaid)), new Set(is!.map(asSaid))];
  const gone = new Map<string, number>();
  for (const line of was!)
    if (!saidAfter.has(asSaid(line))) gone.set(asMeant(line), (gone.get(asMeant(line)) ?? 0) + 1);
  return is!.filter((line) => {
    const left = saidBefore.has(asSaid(line)) ? 0 : (gone.get(asMeant(line)) ?? 0);
    if (left > 0) gone.set(asMeant(line), left - 1);
    return left > 0;
  }).length;
}

type Priced = { readonly changed: number; readonly smallest: number | null; readonly costs: DiffCosts };

const nothing = (): DiffCosts => ({ scaffolding: 0, strayFiles: 0, reformatting: 0, comments: 0 });

/** What a file's change is made of; null: not code that we can read. */
async function priced(change: FileChange, asked: string, accepted: string | undefined): Promise<Priced | null> {
  const { path, before, after, isNew } = change;
  const language = codeLanguage(path.slice(path.lastIndexOf('.') + 1));
  const name = path.slice(path.lastIndexOf('/') + 1);
  const isStray = isNew && stray.test(name) && !asked.includes(name) && accepted === undefined;
  if (language === null) {
    if (!isStray) return null;
    return { changed: 0, smallest: null, costs: { ...nothing(), strayFiles: after.split('\n').length } };
  }
  const [old, now] = [await parseCode(language, before), await parseCode(language, after)];
  if (old === null || now === null) return null;
  const [was, is] = [bare(old.root)!, bare(now.root)!];
  const changed = treeDistance(was, is);
  if (isStray) return { changed: 0, smallest: null, costs: { ...nothing(), strayFiles: changed } };
  const costs = {
    scaffolding: addedNodes(old.root, now.root, isScaffolding),
    strayFiles: 0,
    reformatting: changed === 0 ? changedLines(before, after) : restyledLines(before, after),
    comments: addedNodes(old.root, now.root, isPlainComment),
  };
  const known = accepted === undefined ? null : await parseCode(language, accepted);
  return { changed, smallest: known === null ? null : treeDistance(was, bare(known.root)!), costs };
}

export function minimalDiff({ accepted, prices: given = {} }: MinimalDiffOptions = {}): Scorer {
  const prices = { ...usualPrices, ...given };
  const odd = Object.entries(prices).find(([, price]) => !(price >= 0 && price <= 100));
  if (odd !== undefined) throw new Error(`minimalDiff: ${odd[0]} costs ${odd[1]}; give a number from 0 to 100.`);
  return {
    name: 'minimal diff',
    version: JSON.stringify(['minimal-diff', 2, prices, accepted === undefined ? null : String(accepted)]),
    // With a function of the user's it may do anything.
    ...(accepted === undefined && { inProcess: true }),
    async score(input): Promise<Measured> {
      const edits = codeEdits(input.turns);
      if (edits.length === 0) return unmeasured('no code was changed');
      const asked = storyOf(input.turns)
        .flatMap(({ news }) => news.filter(({ role }) => role === 'user').map(({ text }) => text))
        .join('\n');
      const known = accepted?.(input) ?? {};
      const files: Priced[] = [];
      for (const edit of edits) {
        const file = await priced(edit, asked, Object.hasOwn(known, edit.path) ? known[edit.path] : undefined);
        if (file !== null) files.push(file);
      }
      if (files.length === 0) return unmeasured('nothing that was changed is code we can read');
      const sum = (of: (file: Priced) => number): number => files.reduce((total, file) => total + of(file), 0);
      const costs = nothing();
      for (const name of Object.keys(costs) as (keyof DiffCosts)[]) costs[name] = sum((file) => file.costs[name]);
      const smallest = sum(({ changed, smallest: needed, costs: { scaffolding } }) =>
        needed === null ? Math.max(0, changed - scaffolding) : Math.min(needed, changed),
      );
      // Scaffolding is part of what changed; at its usual price it costs what it is.
      const extra = Object.entries(costs).reduce((total, [name, nodes]) => {
        const price = prices[name as keyof DiffCosts];
        return total + nodes * (name === 'scaffolding' ? price - 1 : price);
      }, 0);
      const changed = sum((file) => file.changed);
      const whole = Math.max(0, changed + extra);
      const unneeded = Object.entries(costs).filter(([, nodes]) => nodes > 0);
      const also = unneeded
        .map(([name, nodes]) => `${nodes} of ${name === 'strayFiles' ? 'stray files' : name}`)
        .join(', ');
      return {
        value: whole === 0 ? 1 : Math.min(1, smallest / whole),
        reason: `${changed} nodes changed, ${smallest} needed${also === '' ? '' : `; ${also}`}`,
        turns: new Map(),
      };
    },
  };
}
