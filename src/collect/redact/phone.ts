/**
 * Phone numbers. International ones (`+…`, `00…`) are asked of libphonenumber; national ones by the ways people group them, because
 * most real ones in text are wrong by some rule of some plan and are somebody's number all the same. A number without a
 * leading zero, area in brackets or a well-known grouping needs a word beside it (context.ts). Dates, times, prices, versions
 * and order numbers are not phones.
 */
import { parsePhoneNumberFromString } from 'libphonenumber-js/max';
import { createRecent } from '../recent.ts';
import type { About } from './context.ts';
import { digitAt, gapBetween, isLetter, type Run, standsAlone } from './digits.ts';
import type { Hit } from './national-id.ts';

const between = /^(?:[-–—‐‑−－.\t\u00a0 ]|\s?[-–]\s?|\)[ -]?| ?\(|\. |\/)$/;
const extension = /\s{0,2}(?:x|ext\.?|#)\s{0,2}\d{1,6}(?!\d)/iy;
const MOST_GROUPS = 7;
const MOST_DIGITS = 15;

export function phoneAt(text: string, run: Run, from: number, about: () => About): Hit | null {
  const { groups } = run;
  const { start, digits } = groups[from]!;
  const before = text.charCodeAt(start - 1);
  const isBracket = before === 40 || before === 0xff08;
  const plus = text[start - (isBracket ? 2 : 1)];
  const isPlus = plus === '+' || plus === '＋';
  // Inside a longer number: 12/34-56.
  if (!isPlus && !isBracket && before > 32 && digitAt(text, start - 2) >= 0 && before < 128) return null;
  const isStrong = isPlus || isBracket || digits[0] === '0' || digits.length === 3 || digits === '1';
  if (!isStrong && !about().labels.has('phone')) return null;
  const last = lastGroup(text, run, from);
  const begin = start - (isBracket ? 1 : 0) - (isPlus ? 1 : 0);
  const national: Shape = { isBracket, groups, from, text };
  let best: { readonly last: number; readonly confidence: number } | null = null;
  if (isPlus || (digits.startsWith('00') && last > from)) best = international(groups, from, last, isPlus);
  if (best === null || best.confidence < 0.5) best = nationalEnd(national, last, about);
  if (best === null) return null;
  const { end } = groups[best.last]!;
  extension.lastIndex = end;
  const more = extension.exec(text);
  const stop = end + (more?.[0].length ?? 0);
  if (isLetter(text.charCodeAt(stop)) || !standsAlone(text, begin, stop)) return null;
  let covered = best.last;
  while (covered + 1 < groups.length && groups[covered + 1]!.start < stop) covered++;
  return { kind: 'phone', start: begin, end: stop, last: covered, confidence: best.confidence };
}

/** The furthest group that could belong to it. */
function lastGroup(text: string, { groups }: Run, from: number): number {
  let size = groups[from]!.digits.length;
  let last = from;
  while (last + 1 < groups.length && last - from < MOST_GROUPS - 1) {
    size += groups[last + 1]!.digits.length;
    if (size > MOST_DIGITS || !between.test(gapBetween(text, groups[last]!, groups[last + 1]!))) break;
    last++;
  }
  return last;
}

const digitsOf = (groups: Run['groups'], from: number, last: number): string => {
  let digits = '';
  for (let i = from; i <= last; i++) digits += groups[i]!.digits;
  return digits;
};

/** The library is asked twice at most: for all groups, and for all but the last, which may be somebody else's. */
function international(groups: Run['groups'], from: number, last: number, isPlus: boolean) {
  for (const end of last > from ? [last, last - 1] : [last]) {
    const digits = digitsOf(groups, from, end);
    if (digits.length >= (isPlus ? 7 : 10) && isPossible(`+${isPlus ? digits : digits.slice(2)}`))
      return { last: end, confidence: 0.95 };
  }
  return null;
}

type Shape = {
  readonly text: string;
  readonly groups: Run['groups'];
  readonly from: number;
  readonly isBracket: boolean;
};

/** Where it ends if it is one: at the end that is surest, and of those the furthest. */
function nationalEnd(of: Shape, last: number, about: () => About) {
  let best: { readonly last: number; readonly confidence: number } | null = null;
  let shape = '';
  let size = 0;
  for (let end = of.from; end <= last; end++) {
    const { digits } = of.groups[end]!;
    shape += `${end > of.from ? '-' : ''}${digits.length}`;
    size += digits.length;
    if (size < 7) continue;
    const confidence = judge(of, end, shape, size, about);
    if (confidence > 0 && confidence >= (best?.confidence ?? 0)) best = { last: end, confidence };
  }
  return best;
}

/** Whether these groups are a national number, from 0 (no) to 1. */
function judge(
  { text, groups, from, isBracket }: Shape,
  last: number,
  shape: string,
  size: number,
  about: () => About,
) {
  const count = last - from + 1;
  const first = groups[from]!.digits;
  if (first === '010' && (shape === '3-4-4' || shape === '3-3-4')) return 0.95;
  const { labels, isOther } = about();
  if (isOther && !isBracket) return 0;
  if (count === 1 && /^01[016789]\d{8}$/.test(first)) return 0.8;
  if (shape === '3-3-4' || shape === '1-3-3-4') return 0.85;
  if (isBracket && size >= 8 && /^[1-5]-\d(?:-\d){0,3}$/.test(shape)) return 0.85;
  const isNamed = labels.has('phone');
  const hasSingle = /-1(?:-|$)/.test(shape);
  if (hasSingle || isDate(shape, digitsOf(groups, from, last))) return 0;
  // A trunk zero, and one kind of separator.
  if (
    first[0] === '0' &&
    first[1] !== '0' &&
    count > 1 &&
    size <= 12 &&
    (size >= 9 || isNamed) &&
    isOneHand(text, groups, from, last)
  )
    return 0.7;
  if (!isNamed) return 0;
  return shape === '2-2-2-2' || (shape === '4-4' && /^1[568]/.test(first)) ? 0.7 : count <= 5 ? 0.6 : 0;
}

/** One kind of separator: 12-34-56-78 and not 12-34 5678. */
function isOneHand(text: string, groups: Run['groups'], from: number, last: number): boolean {
  let kind: string | null = null;
  for (let i = from + 1; i <= last; i++) {
    const gap = gapBetween(text, groups[i - 1]!, groups[i]!).trim();
    if (gap === '.' || gap === '/') return false;
    if (gap.startsWith(')')) continue;
    if (kind !== null && gap !== kind) return false;
    kind = gap;
  }
  return true;
}

const dates = /^(?:4-2-2|2-2-4|1-2-4|2-1-4|1-1-4|4-1-2|4-2-1|4-1-1|4-4|2-2-4-2-2|4-2-2-2-2(?:-2)?)$/;
function isDate(shape: string, digits: string): boolean {
  return dates.test(shape) && /^(?:19|20)\d\d/.test(shape.startsWith('4') ? digits : digits.slice(-4));
}

/** The library takes microseconds; whoever sends the same number a thousand times has it asked once. */
const asked = createRecent<boolean>(2000);

function isPossible(number: string): boolean {
  const known = asked.get(number);
  if (known !== undefined) return known;
  const possible = parsePhoneNumberFromString(number)?.isPossible() ?? false;
  asked.set(number, possible);
  return possible;
}
