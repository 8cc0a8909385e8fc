/**
 * Expressions over the signals of a conversation, as a check declares them: numbers, names of signals, + − × ÷, comparisons
 * (1 or 0), and, or, not, min and max. A parser of our own: one pass over the text, capped in length, depth and size, and nothing that
 * is not in this list can be said. Pure.
 *
 *   resolved                        a name: an outcome, or one of `feedback` and what users did (`retried` …)
 *   "first-contact resolution"      a name with other characters
 *   feedback < 0.5                  1 where it holds, else 0
 *   max(0, 1 - handle_minutes / 20) + 0.2 * not retried
 */
export type Expression =
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'call'; readonly does: Does; readonly of: readonly Expression[] };

const does = {
  '+': (a: number, b: number) => a + b,
  '-': (a: number, b: number) => a - b,
  '*': (a: number, b: number) => a * b,
  '/': (a: number, b: number) => a / b,
  '<': (a: number, b: number) => Number(a < b),
  '<=': (a: number, b: number) => Number(a <= b),
  '>': (a: number, b: number) => Number(a > b),
  '>=': (a: number, b: number) => Number(a >= b),
  '=': (a: number, b: number) => Number(a === b),
  '!=': (a: number, b: number) => Number(a !== b),
  and: (a: number, b: number) => Number(a !== 0 && b !== 0),
  or: (a: number, b: number) => Number(a !== 0 || b !== 0),
  not: (a: number) => Number(a === 0),
  negate: (a: number) => -a,
  min: (...all: number[]) => Math.min(...all),
  max: (...all: number[]) => Math.max(...all),
} as const;
type Does = keyof typeof does;

const most = { characters: 500, tokens: 150, depth: 20, names: 10 };

/** Weakest first. */
const levels: readonly (readonly string[])[] = [
  ['or'],
  ['and'],
  ['<', '<=', '>', '>=', '=', '!='],
  ['+', '-'],
  ['*', '/'],
];
const words = new Set(['and', 'or', 'not', 'min', 'max']);

/** A problem in words where it is none. */
export function parseExpression(text: string): Expression | { readonly problem: string } {
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof Problem) return { problem: error.message };
    throw error;
  }
}

class Problem extends Error {}

type Token = { readonly text: string; readonly kind: 'number' | 'name' | 'sign'; readonly at: number };

const token =
  /(?<space>[ \t\n]+)|(?<number>(?:\d{1,15}(?:\.\d{0,15})?|\.\d{1,15}))|(?<name>[A-Za-z_][A-Za-z0-9_]*)|"(?<quoted>[^"]{1,128})"|(?<sign><=|>=|!=|[-+*/<>=(),])/y;

function tokensOf(text: string): Token[] {
  if (text.length > most.characters) throw new Problem(`has ${text.length} characters; at most ${most.characters}`);
  const tokens: Token[] = [];
  for (let at = 0; at < text.length; at = token.lastIndex) {
    token.lastIndex = at;
    const found = token.exec(text)?.groups;
    if (found === undefined) throw new Problem(`cannot be read at ${JSON.stringify(text.slice(at, at + 10))}`);
    const { space, number, name, quoted, sign } = found;
    if (space !== undefined) continue;
    if (number !== undefined) tokens.push({ text: number, kind: 'number', at });
    else if (quoted !== undefined) tokens.push({ text: quoted, kind: 'name', at });
    else if (name !== undefined) tokens.push({ text: name, kind: words.has(name) ? 'sign' : 'name', at });
    else tokens.push({ text: sign!, kind: 'sign', at });
    if (tokens.length > most.tokens) throw new Problem(`is too long: at most ${most.tokens} names, numbers and signs`);
  }
  return tokens;
}

function parse(text: string): Expression {
  const tokens = tokensOf(text);
  let i = 0;
  const isNext = (...signs: readonly string[]): boolean =>
    tokens[i]?.kind === 'sign' && signs.includes(tokens[i]!.text);
  const expect = (sign: string) => {
    if (!isNext(sign)) throw wrong(`${sign} is missing`);
    i++;
  };
  const wrong = (what: string): Problem =>
    new Problem(
      i < tokens.length
        ? `${what} before ${JSON.stringify(tokens[i]!.text)}, character ${tokens[i]!.at + 1}`
        : `${what} at its end`,
    );
  const binary = (level: number, depth: number): Expression => {
    const signs = levels[level];
    if (signs === undefined) return unary(depth);
    let left = binary(level + 1, depth);
    while (isNext(...signs)) {
      const sign = tokens[i++]!.text as Does;
      left = { kind: 'call', does: sign, of: [left, binary(level + 1, depth)] };
    }
    return left;
  };
  const unary = (depth: number): Expression => {
    if (depth > most.depth) throw new Problem(`is nested too deep: at most ${most.depth}`);
    if (isNext('-', 'not')) {
      const sign = tokens[i++]!.text;
      return { kind: 'call', does: sign === '-' ? 'negate' : 'not', of: [unary(depth + 1)] };
    }
    if (isNext('min', 'max')) {
      const called = tokens[i++]!.text as Does;
      expect('(');
      const of = [binary(0, depth + 1)];
      while (isNext(',')) {
        i++;
        of.push(binary(0, depth + 1));
      }
      expect(')');
      return { kind: 'call', does: called, of };
    }
    if (isNext('(')) {
      i++;
      const inside = binary(0, depth + 1);
      expect(')');
      return inside;
    }
    const next = tokens[i];
    if (next === undefined || next.kind === 'sign') throw wrong('a number or the name of a signal is missing');
    i++;
    return next.kind === 'number' ? { kind: 'number', value: Number(next.text) } : { kind: 'name', name: next.text };
  };
  const whole = binary(0, 0);
  if (i < tokens.length) throw wrong('a sign is missing');
  const names = namesIn(whole);
  if (names.length === 0) throw new Problem('names no signal');
  if (names.length > most.names) throw new Problem(`names ${names.length} signals; at most ${most.names}`);
  return whole;
}

/** Each once, in the order they are named. */
export function namesIn(expression: Expression): string[] {
  switch (expression.kind) {
    case 'number':
      return [];
    case 'name':
      return [expression.name];
    case 'call':
      return [...new Set(expression.of.flatMap(namesIn))];
    default:
      return expression satisfies never;
  }
}

/** null: a signal that it needs is not there, or it has no number (a division by nothing). */
export function valueWith(expression: Expression, signals: ReadonlyMap<string, number>): number | null {
  const value = computed(expression, signals);
  return Number.isFinite(value) ? value : null;
}

/** NaN where there is none; whatever is made of NaN is NaN too, comparisons included. */
function computed(expression: Expression, signals: ReadonlyMap<string, number>): number {
  switch (expression.kind) {
    case 'number':
      return expression.value;
    case 'name':
      return signals.get(expression.name) ?? Number.NaN;
    case 'call': {
      const of = expression.of.map((one) => computed(one, signals));
      if (!of.every(Number.isFinite)) return Number.NaN;
      return (does[expression.does] as (...all: number[]) => number)(...of);
    }
    default:
      return expression satisfies never;
  }
}
