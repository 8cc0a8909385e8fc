/**
 * Runs of digits, the way people write long numbers: groups with up to three spaces, dashes, dots, slashes or brackets between.
 * Everything that is recognised by its digits (phone.ts, national-id.ts, ip.ts) is asked about the same runs, so that
 * a text without long numbers costs one look for digits. Full-width digits count as digits.
 */
export type Group = { readonly start: number; readonly end: number; readonly digits: string };
export type Run = {
  readonly groups: readonly Group[];
  /** Digits in all groups. */
  readonly size: number;
  readonly start: number;
  readonly end: number;
};

const MAX_GAP = 3;
/** A run that goes on beyond this is a table, and is taken in pieces. */
const MAX_GROUPS = 64;
const first = /[0-9０-９]/g;

export const digitAt = (text: string, at: number): number => {
  const code = text.charCodeAt(at);
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  return code >= 0xff10 && code <= 0xff19 ? code - 0xff10 : -1;
};

const gaps = new Set([...' \t\n\r\u00a0\u2009\u202f-–—‐‑−－.·/()（）'].map((one) => one.charCodeAt(0)));

export const isLetter = (code: number): boolean =>
  (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || code === 95;

/** The runs of at least `least` digits, one after the other. */
export function* digitRuns(text: string, least: number): Generator<Run> {
  first.lastIndex = 0;
  for (let hit = first.exec(text); hit !== null; hit = first.exec(text)) {
    let at = hit.index;
    const groups: Group[] = [];
    let size = 0;
    for (;;) {
      const start = at;
      let digits = '';
      for (let digit = digitAt(text, at); digit >= 0; digit = digitAt(text, ++at)) digits += digit;
      groups.push({ start, end: at, digits });
      size += digits.length;
      if (groups.length >= MAX_GROUPS) break;
      const next = afterGap(text, at);
      if (next < 0) break;
      at = next;
    }
    const end = groups[groups.length - 1]!.end;
    first.lastIndex = end;
    if (size >= least) yield { groups, size, start: hit.index, end };
  }
}

function afterGap(text: string, from: number): number {
  for (let at = from; at <= from + MAX_GAP && at < text.length; at++) {
    if (digitAt(text, at) >= 0) return at;
    if (at === from + MAX_GAP || !gaps.has(text.charCodeAt(at))) return -1;
  }
  return -1;
}

/** What stands between two groups. */
export const gapBetween = (text: string, a: Group, b: Group): string => text.slice(a.end, b.start);

/** Neither begins nor ends inside a word, a decimal or a longer number. */
export function standsAlone(text: string, start: number, end: number): boolean {
  const before = text.charCodeAt(start - 1);
  const behind = text.charCodeAt(end);
  if (isLetter(before) && text[start - 2] !== '\\') return false; // `\n` before it is no word
  if (isLetter(behind) || digitAt(text, start - 1) >= 0 || digitAt(text, end) >= 0) return false;
  if ((before === 46 || before === 44) && digitAt(text, start - 2) >= 0) return false;
  // A piece of an id: b4f1c93e-0220-4624-8234-f9e6e1f7a6b1.
  if (
    before === 45 &&
    isLetter(text.charCodeAt(start - 2)) &&
    idBefore.test(text.slice(Math.max(0, start - 14), start))
  )
    return false;
  return !(behind === 45 && idBehind.test(text.slice(end, end + 14)));
}
const idBefore = /(?:\d[A-Za-z]{1,12}|(?<![A-Za-z])[a-f]{4,12})-$/;
const idBehind = /^-(?:[A-Za-z]{1,12}\d|[a-f]{4,12}(?![A-Za-z]))/;
