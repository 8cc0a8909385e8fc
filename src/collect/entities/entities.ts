/**
 * Named entities by rules: people, addresses, organisations, places, dates of birth. Not before the first write unless an agent asks for it:
 * what takes a dictionary and the sense of a sentence is wrong more often than a checksum is. How often is measured
 * (`npm run bench -- pii`). Where a model of one's own or a Presidio server is to be had, finder.ts asks that instead.
 */
import { joined, type Redactor, type Span } from '../redact/redactor.ts';
import { addressesIn } from './address.ts';
import { birthsIn } from './birth.ts';
import { namesIn } from './names.ts';

export const entityKinds: readonly string[] = ['person', 'address', 'organization', 'location', 'birth'];

/** Longer texts are read in pieces, at line ends where there are any, so that nothing takes longer than in proportion. */
const PIECE = 4000;

export const entities: Redactor = {
  name: 'entity',
  kinds: entityKinds,
  find(text) {
    const spans: Span[] = [];
    for (let at = 0; at < text.length; ) {
      const end = pieceEnd(text, at);
      const piece = at === 0 && end === text.length ? text : text.slice(at, end);
      for (const span of inPiece(piece)) spans.push({ ...span, start: span.start + at, end: span.end + at });
      at = end;
    }
    return spans;
  },
};

function pieceEnd(text: string, from: number): number {
  if (text.length - from <= PIECE) return text.length;
  const line = text.lastIndexOf('\n', from + PIECE);
  if (line > from) return line + 1;
  const space = text.lastIndexOf(' ', from + PIECE);
  return space > from ? space + 1 : from + PIECE;
}

/** An address holds names of streets and places, which are then no names. */
function inPiece(text: string): Span[] {
  const sure = joined([...addressesIn(text), ...birthsIn(text)]);
  const names = namesIn(text).filter(({ start, end }) => !sure.some((span) => span.start < end && start < span.end));
  return joined([...sure, ...names]);
}
