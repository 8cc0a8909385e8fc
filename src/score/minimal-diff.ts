/**
 * Minimal change (S7): how much of what an agent changed in code was needed. Files before and after are compared as trees
 * (tree-distance.ts); what is unneeded is told apart and priced in nodes of the tree:
 *
 *   scaffolding    statements that only print, log or stand in for something (console.log, print, dbg!, todo! …), lines of notes (TODO …)
 *   stray files    new files that nobody asked for by name and that are called like leavings (tmp, debug, backup, notes …)
 *   reformatting   lines that are written in another way and say the same (restyled.ts), imports in another order (import-order.ts)
 *   comments       lines of comments, and of Python's docstrings, that were added (comment-lines.ts)
 *
 *     value = smallest / (changed + prices),   at most 1
 *
 * `smallest` is the distance to the change that is known to do: what `accepted` returns for a conversation, e.g. the patch that the
 * tests took, or the one that a reviewer wrote as the correction, and what that has of these four costs nothing. Without it, it is what is left of the change when scaffolding and stray files are taken out, so only
 * those and the other two can cost. Whether the change works is for outcomes. Unmeasured: no code was changed.
 */
import { bare, withDocstrings } from './bare-code.ts';
import { codeEdits } from './code-edits.ts';
import { addedCommentLines } from './comment-lines.ts';
import { correctionIn } from './context-recall.ts';
import { type CodeNode, codeLanguage, parseCode } from './grammars.ts';
import { movedImports, withSortedImports } from './import-order.ts';
import type { FileChange } from './known-files.ts';
import { patchOf, replaced } from './patch.ts';
import { type Code, restyledLines } from './restyled.ts';
import { type Measured, type Scorer, type ScorerInput, unmeasured } from './scorer.ts';
import { storyOf } from './story.ts';
import { treeDistance } from './tree-distance.ts';

export type MinimalDiffOptions = {
  /**
   * Files as they are after the smallest change that does, by path; null: none is known. `'corrections'`: where the newest correction
   * by a user or a label is a patch, that is it.
   */
  readonly accepted?: 'corrections' | ((input: ScorerInput) => Readonly<Record<string, string>> | null);
  /** Part of a changed node that a node of each costs. */
  readonly prices?: Partial<typeof usualPrices>;
};

const usualPrices = { scaffolding: 1, strayFiles: 1, reformatting: 0.5, comments: 0.5 };
export type DiffCosts = { -readonly [Name in keyof typeof usualPrices]: number };

const prints =
  /^(?:console\.\w+|pp?rint|println!?|eprint(?:ln)?!|dbg!|todo!|unimplemented!|log\.(?:Print|debug)\w*|(?:logger|logging|slog)\.[dD]ebug|fmt\.(?:Print\w*|Fprint\w*\(os\.Std(?:out|err))|System\.(?:out|err)\.\w+|\w+\.printStackTrace|debugger|breakpoint|i?pdb\.set_trace|importi?pdb)(?!\w)/;
const notes = /\b(?:TODO|FIXME|XXX|HACK)\b/;
/** Of the name of a file; a module of code may well be called copy, or order-summary. */
const stray = {
  any: /(?:^|[^a-z])(?:tmp|temp|debug|backup|bak|orig|old|copy|scratch|notes?|summary|changes)(?:[^a-z]|$)|\.log$/i,
  code: /(?:^|[^a-z])(?:tmp|temp|debug|backup|bak|orig|scratch)(?:[^a-z]|$)|[^a-z](?:old|copy)\d*\.\w+$/i,
};

const isStatement = ({ kind }: CodeNode): boolean =>
  kind === 'expression_statement' || kind.endsWith('_statement') || kind === 'debugger_statement';
/** The first words of it: who prints says so at once. */
function opening(node: CodeNode, most = 60): string {
  if (node.children.length === 0) return node.text.slice(0, most);
  let said = '';
  for (const child of node.children) {
    if (said.length >= most) break;
    said += opening(child, most - said.length);
  }
  return said;
}

/** Nodes of the statements that print and that `after` has more of than `before`. */
function addedPrints(before: CodeNode, after: CodeNode): number {
  const known = new Map<string, number>();
  for (const { shape } of printsIn(before)) known.set(shape, (known.get(shape) ?? 0) + 1);
  let added = 0;
  for (const { shape, size } of printsIn(after)) {
    const count = known.get(shape) ?? 0;
    if (count > 0) known.set(shape, count - 1);
    else added += size;
  }
  return added;
}
const printsIn = (node: CodeNode): CodeNode[] =>
  isStatement(node) && prints.test(opening(node)) ? [node] : node.children.flatMap(printsIn);

type Priced = {
  readonly changed: number;
  readonly smallest: number | null;
  readonly costs: DiffCosts;
  /** Of the scaffolding, what is part of what changed: statements. A note is none. */
  readonly statements: number;
};

const nothing = (): DiffCosts => ({ scaffolding: 0, strayFiles: 0, reformatting: 0, comments: 0 });

/** What a file's change is made of; null: not code that we can read. */
async function priced(change: FileChange, asked: string, accepted: string | undefined): Promise<Priced | null> {
  const { path, before, after, isNew } = change;
  const language = codeLanguage(path.slice(path.lastIndexOf('.') + 1));
  const name = path.slice(path.lastIndexOf('/') + 1);
  const isStray =
    isNew && stray[language === null ? 'any' : 'code'].test(name) && !asked.includes(name) && accepted === undefined;
  if (language === null) {
    if (!isStray) return null;
    return { changed: 0, smallest: null, costs: { ...nothing(), strayFiles: after.split('\n').length }, statements: 0 };
  }
  const [old, now, known] = await Promise.all(
    [before, after, accepted].map(async (text): Promise<Code | null> => {
      const parsed = text === undefined ? null : await parseCode(language, text);
      if (parsed === null) return null;
      const root = withDocstrings(language, parsed.root);
      return { root, bare: bare(language, root), text: text! };
    }),
  );
  if (!old || !now) return null;
  const moved = (one: Code) => movedImports(old.bare, one.bare);
  const distance = (one: Code) => {
    const asWritten = treeDistance(old.bare, one.bare);
    if (asWritten === 0 || moved(one) === 0) return asWritten;
    return Math.min(asWritten, treeDistance(withSortedImports(old.bare), withSortedImports(one.bare)));
  };
  const changed = distance(now);
  if (isStray) return { changed: 0, smallest: null, costs: { ...nothing(), strayFiles: changed }, statements: 0 };
  const statementsOf = (one: Code) => addedPrints(old.bare, one.bare);
  const costsOf = (one: Code): DiffCosts => {
    const comments = addedCommentLines(old, one);
    const left = comments.filter((line) => notes.test(line)).length;
    return {
      scaffolding: statementsOf(one) + left,
      strayFiles: 0,
      reformatting: restyledLines(language, old, one) + moved(one),
      comments: comments.length - left,
    };
  };
  const costs = costsOf(now);
  const statements = statementsOf(now);
  if (!known) return { changed, smallest: null, costs, statements };
  const needed = costsOf(known);
  for (const name of Object.keys(costs) as (keyof DiffCosts)[]) costs[name] = Math.max(0, costs[name] - needed[name]);
  return {
    ...{ changed, smallest: distance(known), costs },
    statements: Math.max(0, statements - statementsOf(known)),
  };
}

type Accepted = (edit: FileChange) => string | undefined;

/** What a patch makes of a file; undefined: it speaks of none that is known here. A file that it does not name stays as it was. */
function patchedBy(text: string | null): Accepted {
  const patched = patchOf(text ?? '');
  return ({ path, before, isNew }) => {
    if (patched.length === 0) return undefined;
    const own = patched.find((one) => path === one.path || path.endsWith(`/${one.path}`));
    if (own === undefined) return isNew ? undefined : before;
    let after = before;
    for (const piece of own.pieces) {
      const next = replaced(after, piece);
      if (next === null) return undefined;
      after = next;
    }
    return after;
  };
}

function acceptedOf(accepted: NonNullable<MinimalDiffOptions['accepted']>, input: ScorerInput): Accepted {
  if (accepted === 'corrections') return patchedBy(correctionIn(input.signals));
  const known = accepted(input) ?? {};
  return ({ path }) => known[Object.keys(known).find((name) => path === name || path.endsWith(`/${name}`)) ?? ''];
}

export function minimalDiff({ accepted, prices: given = {} }: MinimalDiffOptions = {}): Scorer {
  const prices = { ...usualPrices, ...given };
  const odd = Object.entries(prices).find(([, price]) => !(price >= 0 && price <= 100));
  if (odd !== undefined) throw new Error(`minimalDiff: ${odd[0]} costs ${odd[1]}; give a number from 0 to 100.`);
  return {
    name: 'minimal diff',
    version: JSON.stringify(['minimal-diff', 6, prices, accepted === undefined ? null : String(accepted)]),
    // With a function of the user's it may do anything.
    ...(typeof accepted !== 'function' && { inProcess: true }),
    ...(accepted !== undefined && { usesLabels: 'corrections' }),
    async score(input): Promise<Measured> {
      const { changes, unread } = codeEdits(input.turns);
      if (changes.length === 0)
        return unmeasured(unread > 0 ? 'what was changed cannot be read' : 'no code was changed');
      const asked = storyOf(input.turns)
        .flatMap(({ news }) => news.filter(({ role }) => role === 'user').map(({ text }) => text))
        .join('\n');
      const known = accepted && acceptedOf(accepted, input);
      const files: Priced[] = [];
      for (const edit of changes) {
        const file = await priced(edit, asked, known?.(edit));
        if (file !== null) files.push(file);
      }
      if (files.length === 0) return unmeasured('nothing that was changed is code we can read');
      const sum = (of: (file: Priced) => number): number => files.reduce((total, file) => total + of(file), 0);
      const costs = nothing();
      for (const name of Object.keys(costs) as (keyof DiffCosts)[]) costs[name] = sum((file) => file.costs[name]);
      const smallest = sum(({ changed, smallest: needed, statements }) =>
        needed === null ? Math.max(0, changed - statements) : Math.min(needed, changed),
      );
      // Statements are part of what changed; at their usual price they cost what they are.
      const extra = Object.entries(costs).reduce(
        (total, [name, nodes]) => total + nodes * prices[name as keyof DiffCosts],
        -sum(({ statements }) => statements),
      );
      const changed = sum((file) => file.changed);
      const whole = Math.max(0, changed + extra);
      const unneeded = Object.entries(costs).filter(([, nodes]) => nodes > 0);
      const also = unneeded
        .map(([name, nodes]) => `${nodes} of ${name === 'strayFiles' ? 'stray files' : name}`)
        .join(', ');
      const more =
        unread === 0 ? '' : `; ${unread} ${unread === 1 ? 'call' : 'calls'} may have changed what cannot be read`;
      return {
        value: whole === 0 ? 1 : Math.min(1, smallest / whole),
        reason: `${changed} nodes changed, ${smallest} needed${also === '' ? '' : `; ${also}`}${more}`,
        turns: new Map(),
      };
    },
  };
}
