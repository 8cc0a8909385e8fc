/**
 * Code as what it says: a tree in which two texts are equal that differ only in what formatters choose. Left out are comments,
 * commas and semicolons that may be there or not, parentheses that only group what stands together anyway, which quotes a string has
 * (JavaScript, TypeScript, Python), whether hexadecimal digits and what stands before a string of Python are capitals, parentheses around the one parameter of an arrow function or a lambda, quotes around keys, a first | of a
 * type, parentheses around imports (Python; Go, where there is one) and around Python's tuples, Rust's braces around one expression. What the tree says by its own shape
 * stays: (a + b) * c is not a + b * c. A leaf remembers where it stood, so that its spelling can be compared.
 */
import { type CodeLanguage, type CodeNode, codeNode } from './grammars.ts';

export const isComment = ({ kind }: Pick<CodeNode, 'kind'>): boolean => kind.includes('comment');

/** A line break between elements of JSX, or before the end of a line of Python. */
const isBlank = ({ kind, text }: CodeNode): boolean =>
  (kind === 'jsx_text' && text === '') || kind === 'line_continuation';

const closing = new Set([')', ']', '}', '>']);
const opening = new Set(['(', '[', '{', '<']);
/** A comma behind one of these leaves a place empty: [,] and [1,,] are not [] and [1,]. */
const holes = new Set([',', ...opening]);

/** Whether it may be there or not without meaning anything: the comma behind what is last, a semicolon that the language adds itself. */
function isOptional(language: CodeLanguage, { kind: around, children }: CodeNode, at: number): boolean {
  const { kind } = children[at]!;
  if (kind === ',') {
    if (around === 'match_arm') return true;
    let [before, next] = [at - 1, at + 1];
    while (before > 0 && isComment(children[before]!)) before--;
    while (next < children.length - 1 && isComment(children[next]!)) next++;
    if (!closing.has(children[next]?.kind ?? '') || holes.has(children[before]?.kind ?? ',')) return false;
    // x[1,] and (x,) are of tuples, and what a macro makes of its words is its own affair.
    const isOnlyOne = before <= 1 || opening.has(children[before - 1]!.kind);
    return !(around === 'token_tree' || (isOnlyOne && /tuple|subscript/.test(around)));
  }
  if (kind === '(' || kind === ')') return around === 'import_from_statement' || around === 'with_clause';
  if (kind !== ';') return false;
  switch (language) {
    case 'python':
      return true;
    case 'go':
      return !/clause|^if_|switch/.test(around);
    case 'java':
    case 'rust':
      return false;
    default:
      return around !== 'for_statement';
  }
}

const isScript = (language: CodeLanguage): boolean => /script|tsx/.test(language);

const isOrHas = (node: CodeNode, is: (kind: string) => boolean): boolean =>
  is(node.kind) || node.children.some((child) => isOrHas(child, is));

/** Parentheses that say something: (a?.b).c fails where a?.b.c does not, Rust's (a.f)() calls what a field holds. */
const isBarrier = (language: CodeLanguage, inner: CodeNode, around: string): boolean =>
  isScript(language)
    ? /^(?:member|subscript|call|non_null)_expression$/.test(around) &&
      isOrHas(inner, (kind) => kind === 'optional_chain' || kind === '?.')
    : language === 'rust' && around === 'call_expression' && inner.kind === 'field_expression';

const leaf = ({ start, end }: CodeNode, kind: string, text: string): CodeNode => codeNode(kind, text, [], start, end);
export const wordsOf = ({ text, children }: CodeNode): string =>
  children.length === 0 ? text : children.map(wordsOf).join('');

/** The same for every way of quoting it. */
function string(language: CodeLanguage, node: CodeNode): CodeNode {
  const [first, ...rest] = node.children;
  const last = rest.pop();
  if (first === undefined || last === undefined) return node;
  // F"" is f"", and u"" is "".
  const quote = wordsOf(first).replaceAll("'", '"').toLowerCase().replace('u', '');
  if (rest.some(({ kind }) => kind === 'interpolation')) {
    const open = leaf(first, first.kind, quote);
    const close = leaf(last, last.kind, wordsOf(last).replaceAll("'", '"'));
    return codeNode(node.kind, '', [open, ...rest, close], node.start, node.end);
  }
  const isRaw = language === 'python' && quote.includes('r');
  const said = rest.map(wordsOf).join('');
  const plain = isRaw ? said : said.replace(/\\([\s\S])/g, (all, what) => (what === "'" || what === '"' ? what : all));
  return leaf(node, 'string', `${quote}${plain}`);
}

/** 0XFF is 0xff, 1E5 is 1e5. */
const isNumber = /^(?:number|integer|float|\w*(?:int|integer|float|floating_point|imaginary)_literal)$/;

const statements = /_statement$|_item$|declaration|^attribute/;
/** Of a block of Rust that only holds it. */
function onlyExpression({ kind, children: [open, inner, close, ...more] }: CodeNode): CodeNode | null {
  const isOne = kind === 'block' && open?.kind === '{' && close?.kind === '}' && more.length === 0;
  return isOne && inner !== undefined && !statements.test(inner.kind) ? inner : null;
}

const without = (node: CodeNode, kind: string): CodeNode =>
  codeNode(
    kind,
    '',
    node.children.filter((child) => child.kind !== '(' && child.kind !== ')'),
    node.start,
    node.end,
  );

/** The parameter of an arrow function, or of Java's lambda, that has one and says nothing more of it. */
function onlyParameter({ kind, children }: CodeNode): CodeNode | null {
  const [open, one, close] = children;
  if (
    !/^(?:formal|inferred)_parameters$/.test(kind) ||
    children.length !== 3 ||
    open!.kind !== '(' ||
    close!.kind !== ')'
  )
    return null;
  const inner = one!.kind === 'required_parameter' && one!.children.length === 1 ? one!.children[0]! : one!;
  return inner.kind === 'identifier' ? inner : null;
}

/** A child that is bare already, in the node that it stands in. */
function spelled(language: CodeLanguage, child: CodeNode, i: number, of: CodeNode): CodeNode {
  const { kind } = of;
  if (isScript(language)) {
    if (kind === 'arrow_function' && of.children[i + 1]?.kind === '=>') return onlyParameter(child) ?? child;
    if (i === 0 && child.kind === 'string' && /^(?:pair|pair_pattern|property_signature)$/.test(kind)) {
      const key = child.text.slice(1);
      if (/^[A-Za-z_$][\w$]*$/.test(key)) return leaf(child, 'property_identifier', key);
    }
  }
  if (language === 'python' && /^(?:return_statement|assignment|yield|for_statement|for_in_clause)$/.test(kind)) {
    if (child.kind === 'tuple' && child.children.length > 2) return without(child, 'expression_list');
    if (child.kind === 'tuple_pattern' && child.children.length > 2) return without(child, 'pattern_list');
  }
  if (language === 'java' && kind === 'lambda_expression') return onlyParameter(child) ?? child;
  if (language === 'go' && child.kind === 'import_spec_list' && child.children.length === 3) return child.children[1]!;
  if (language === 'rust' && (kind === 'match_arm' || kind === 'closure_expression'))
    return onlyExpression(child) ?? child;
  return child;
}

/** Python's docstrings as what they are: comments that a program can read. */
export function withDocstrings(language: CodeLanguage, node: CodeNode): CodeNode {
  if (language !== 'python' || node.children.length === 0) return node;
  const children = node.children.map((child) => withDocstrings(language, child));
  const first = children.findIndex((child) => !isComment(child));
  const [said, ...more] = children[first]?.children ?? [];
  const isDocstring =
    /^(?:module|block)$/.test(node.kind) &&
    children[first]?.kind === 'expression_statement' &&
    more.length === 0 &&
    said?.kind === 'string' &&
    /^[ru]?["']/i.test(wordsOf(said));
  if (isDocstring) children[first] = leaf(children[first]!, 'comment', wordsOf(said));
  return children.every((child, i) => child === node.children[i])
    ? node
    : codeNode(node.kind, node.text, children, node.start, node.end);
}

export function bare(language: CodeLanguage, node: CodeNode, around = ''): CodeNode {
  if (isNumber.test(node.kind) && node.children.length === 0) return leaf(node, node.kind, node.text.toLowerCase());
  const kept = node.children.filter(
    (child, i) => !isComment(child) && !isBlank(child) && !isOptional(language, node, i),
  );
  const same = codeNode(
    node.kind,
    node.text,
    kept.map((child) => bare(language, child, node.kind)),
    node.start,
    node.end,
  );
  const { kind, children } = same;
  if (/^parenthesized_(?:expression|type)$/.test(kind) && children.length === 3) {
    const inner = children[1]!;
    return isBarrier(language, inner, around) ? same : inner;
  }
  if (
    (kind === 'union_type' || kind === 'intersection_type') &&
    children.length === 2 &&
    /^[|&]$/.test(children[0]!.kind)
  )
    return children[1]!;
  if (kind === 'string' && (language === 'python' || isScript(language))) return string(language, same);
  const plain = children.map((child, i) => spelled(language, child, i, same));
  return plain.every((child, i) => child === children[i])
    ? same
    : codeNode(kind, same.text, plain, node.start, node.end);
}
