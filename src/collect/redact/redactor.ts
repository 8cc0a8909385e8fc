/**
 * What a finder of personal data is, and how several of them are applied to one text. A redactor only finds; what is
 * put in place is the kind in brackets, the same everywhere, so a reader and a model see `[email]` and nothing else.
 */
export type Span = { readonly start: number; readonly end: number; readonly kind: string };

export type Redactor = {
  readonly name: string;
  /** Spans in any order, possibly overlapping. Linear in the text's length, whatever the text. */
  find(text: string): Span[];
};

export type Counts = Record<string, number>;

export function findAll(text: string, redactors: readonly Redactor[]): Span[] {
  let spans: Span[] = [];
  for (const redactor of redactors) {
    const found = redactor.find(text);
    if (found.length > 0) spans = spans.length === 0 ? found : spans.concat(found);
  }
  return spans;
}

const rank = (span: Span): number => (span.kind === 'secret' ? 0 : 1);

/**
 * Overlapping spans become one, of the kind that begins first. A secret goes before anything that begins with it, and
 * an address that begins inside a secret is none: in `app:password@host` only the password is replaced.
 */
export function replaceSpans(text: string, spans: readonly Span[], counts: Counts): string {
  const ordered = [...spans].sort((a, b) => a.start - b.start || rank(a) - rank(b) || b.end - a.end);
  const joined: { start: number; end: number; kind: string }[] = [];
  for (const span of ordered) {
    const open = joined.at(-1);
    if (open === undefined || span.start >= open.end) joined.push({ ...span });
    else if (open.kind !== 'secret' || span.kind !== 'email') open.end = Math.max(open.end, span.end);
  }
  let result = '';
  let copied = 0;
  for (const { start, end, kind } of joined) {
    result += `${text.slice(copied, start)}[${kind}]`;
    copied = end;
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return result + text.slice(copied);
}
