/**
 * What a finder of personal data is, and how several of them are applied to one text. A redactor only finds: where, of what
 * kind, how sure. What is put in place is another's decision (placeholder.ts).
 */
export type Span = {
  readonly start: number;
  readonly end: number;
  readonly kind: string;
  /** From 0 to 1; 1 where it has no chance of being anything else. */
  readonly confidence?: number;
  /** The words around told, not the value: elsewhere in the conversation it would not be known again. */
  readonly isContextual?: boolean;
  /** A named entity: what has a form goes before it. */
  readonly isGuess?: boolean;
};

export type Redactor = {
  readonly name: string;
  /** What it can find; without it, its name. */
  readonly kinds?: readonly string[];
  /**
   * Spans in any order, possibly overlapping. Linear in the text's length, whatever the text; `spend` is told of work beyond
   * reading it once, in characters.
   */
  find(text: string, spend?: (characters: number) => void): Span[];
};

export type Counts = Record<string, number>;

export function findAll(text: string, redactors: readonly Redactor[], spend?: (characters: number) => void): Span[] {
  let spans: Span[] = [];
  for (const redactor of redactors) {
    const found = redactor.find(text, spend);
    if (found.length > 0) spans = spans.length === 0 ? found : spans.concat(found);
  }
  return spans;
}

/**
 * A secret goes before anything that begins with it, a card before a number that might be one of many things, and what a
 * sentence suggests (a name) behind everything that has a form.
 */
const rank = ({ kind, isGuess }: Span): number =>
  isGuess ? 3 : kind === 'secret' ? 0 : kind === 'card' || kind === 'email' ? 1 : 2;

/**
 * In order and without overlap: those that overlap become one, of the kind that begins first. An address that begins inside a
 * secret is none: in `app:password@host` only the password is replaced. A guess gives way to what has a form.
 */
export function joined(spans: readonly Span[]): Span[] {
  const ordered = [...spans].sort((a, b) => a.start - b.start || rank(a) - rank(b) || b.end - a.end);
  const result: { -readonly [K in keyof Span]: Span[K] }[] = [];
  for (const span of ordered) {
    const open = result.at(-1);
    if (open === undefined || span.start >= open.end) result.push({ ...span });
    else if (open.isGuess && !span.isGuess) {
      const rest = open.end > span.end ? { ...open, start: span.end } : null;
      if (span.start - open.start < 2) result.pop();
      else open.end = span.start;
      result.push({ ...span });
      if (rest !== null && rest.end - rest.start > 2) result.push(rest);
    } else if (span.isGuess && !open.isGuess) {
      if (span.end > open.end + 2) result.push({ ...span, start: open.end });
    } else if (open.kind !== 'secret' || span.kind !== 'email') open.end = Math.max(open.end, span.end);
  }
  return result;
}

/** `place` says what stands for each. */
export function replaceSpans(
  text: string,
  spans: readonly Span[],
  place: (span: Span, value: string) => string,
): string {
  let result = '';
  let copied = 0;
  for (const span of joined(spans)) {
    result += text.slice(copied, span.start) + place(span, text.slice(span.start, span.end));
    copied = span.end;
  }
  return result + text.slice(copied);
}
