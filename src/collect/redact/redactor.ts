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

/**
 * Overlapping spans become one, of the kind that begins first. A secret goes before anything that begins with it, and
 * an address that begins inside a secret is none: in `app:password@host` only the password is replaced.
 */
export function replaceSpans(text: string, spans: readonly Span[], counts: Counts): string {
  const rank = (span: Span) => (span.kind === 'secret' ? 0 : 1);
  const ordered = [...spans].sort((a, b) => a.start - b.start || rank(a) - rank(b) || b.end - a.end);
  let result = '';
  let copied = 0;
  let open: { start: number; end: number; kind: string } | null = null;
  const close = () => {
    if (open === null) return;
    result += `${text.slice(copied, open.start)}[${open.kind}]`;
    copied = open.end;
    counts[open.kind] = (counts[open.kind] ?? 0) + 1;
  };
  for (const span of ordered) {
    if (open !== null && span.start < open.end) {
      if (open.kind !== 'secret' || span.kind !== 'email') open.end = Math.max(open.end, span.end);
    } else {
      close();
      open = { ...span };
    }
  }
  close();
  return result + text.slice(copied);
}
