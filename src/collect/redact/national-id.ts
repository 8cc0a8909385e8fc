/**
 * Numbers that states and banks give to people, by digits alone: US social security and taxpayer numbers, UK NHS numbers, German
 * tax ids, Korean resident (RRN), foreigner (FRN) and business numbers, Korean and other licences, passports and bank
 * accounts. Where a checksum exists it is asked; where the shape is not enough (nine digits are anything) the words around
 * decide. Korean resident numbers issued since October 2020 have no checksum any more, so a wrong one rejects nothing; bare
 * thirteen digits that are a barcode or a time are not taken for one.
 */
import type { About } from './context.ts';
import { type Group, gapBetween, type Run, standsAlone } from './digits.ts';

export type Hit = {
  readonly kind: string;
  readonly start: number;
  readonly end: number;
  readonly last: number;
  readonly confidence: number;
};
/** `about` is asked only where the shape is right: reading the words around costs more than all shapes together. */
export type Recognize = (text: string, run: Run, from: number, about: () => About) => Hit | null;

const dash = /^[-–—‐‑−－]$/;
const narrow = /^(?:\s?[-–—‐‑−－]\s?|\s{1,2})$/;

/** The digits of groups of these lengths with these gaps between; null: they are not of that shape. */
function shaped(text: string, { groups }: Run, from: number, lengths: readonly number[], gap: RegExp): string | null {
  let digits = '';
  for (let i = 0; i < lengths.length; i++) {
    const group = groups[from + i];
    if (group === undefined || group.digits.length !== lengths[i]) return null;
    if (i > 0 && !gap.test(gapBetween(text, groups[from + i - 1]!, group))) return null;
    digits += group.digits;
  }
  const start = groups[from]!.start;
  return standsAlone(text, start, groups[from + lengths.length - 1]!.end) ? digits : null;
}

function hit(kind: string, run: Run, from: number, count: number, confidence: number): Hit {
  const last = from + count - 1;
  return { kind, start: run.groups[from]!.start, end: run.groups[last]!.end, last, confidence };
}

const weighted = (digits: string, weights: readonly number[]): number =>
  weights.reduce((sum, weight, i) => sum + weight * Number(digits[i]), 0);

const ssn: Recognize = (text, run, from, about) => {
  const spaced = shaped(text, run, from, [3, 2, 4], narrow);
  const digits = spaced ?? shaped(text, run, from, [9], narrow);
  if (digits === null || digits.startsWith('000') || digits.slice(3, 5) === '00' || digits.endsWith('0000'))
    return null;
  const isNamed = about().labels.has('ssn');
  if (spaced === null && !isNamed) return null;
  return hit('us-ssn', run, from, spaced === null ? 1 : 3, isNamed ? 1 : 0.8);
};

const nhs: Recognize = (text, run, from, about) => {
  const spaced = shaped(text, run, from, [3, 3, 4], narrow);
  const digits = spaced ?? shaped(text, run, from, [10], narrow);
  if (digits === null || !about().labels.has('nhs')) return null;
  const check = (11 - (weighted(digits, [10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11)) % 11;
  return check === Number(digits[9]) ? hit('uk-nhs', run, from, spaced === null ? 1 : 3, 1) : null;
};

/** ISO 7064 (11, 10): the last digit follows from the ten before. */
export function isGermanTaxId(digits: string): boolean {
  if (digits[0] === '0') return false;
  let product = 10;
  for (let i = 0; i < 10; i++) {
    const sum = (Number(digits[i]) + product) % 10 || 10;
    product = (sum * 2) % 11;
  }
  return (11 - product) % 10 === Number(digits[10]);
}

const germanTax: Recognize = (text, run, from, about) => {
  const spaced = shaped(text, run, from, [2, 3, 3, 3], narrow);
  const digits = spaced ?? shaped(text, run, from, [11], narrow);
  if (digits === null || !isGermanTaxId(digits)) return null;
  const isNamed = about().labels.has('tax');
  return isNamed || spaced !== null ? hit('de-tax-id', run, from, spaced === null ? 1 : 4, isNamed ? 1 : 0.8) : null;
};

const isBirth = (digits: string): boolean => {
  const month = Number(digits.slice(2, 4));
  const day = Number(digits.slice(4, 6));
  return month >= 1 && month <= 12 && day >= 1 && day <= 31;
};
const registered = (digits: string): boolean => {
  const sum = weighted(digits, [2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5]) % 11;
  const check = Number(digits[12]);
  return (11 - sum) % 10 === check || (13 - sum) % 10 === check;
};
/** A barcode's check digit (EAN-13); Korean ones begin with 880. */
const isBarcode = (digits: string): boolean => weighted(digits, [1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1]) % 10 === 0;

const residentGap = /^\s{0,2}[-–—‐‑−－.]?\s{0,2}$/;
const hidden = /[*●○xX＊]{6,7}/y;

/** 880101-1234567, with spaces, in one piece, and with its end hidden. */
const resident: Recognize = (text, run, from, about) => {
  const head = run.groups[from]!;
  const kind = (gender: string | undefined) => (gender !== undefined && gender >= '5' ? 'kr-frn' : 'kr-rrn');
  if (head.digits.length === 13) {
    const { digits } = head;
    if (!isBirth(digits) || !/[1-8]/.test(digits[6]!) || !standsAlone(text, head.start, head.end)) return null;
    const { labels, isOther } = about();
    const isNamed = labels.has('rrn');
    const isTime = digits[0] === '1' && digits[1]! >= '5';
    if (!isNamed && (isOther || isTime || isBarcode(digits))) return null;
    if (
      !isNamed &&
      !registered(digits) &&
      !/\p{Script=Hangul}/u.test(text.slice(Math.max(0, head.start - 30), head.end + 30))
    )
      return null;
    return hit(kind(digits[6]), run, from, 1, isNamed || registered(digits) ? 0.9 : 0.6);
  }
  if (head.digits.length !== 6 || !isBirth(head.digits) || !standsAlone(text, head.start, head.end)) return null;
  const tail = run.groups[from + 1];
  if (tail === undefined || tail.digits.length === 1) return masked(text, run, from, tail);
  if (tail.digits.length !== 7 || !/[1-8]/.test(tail.digits[0]!)) return null;
  if (!residentGap.test(gapBetween(text, head, tail)) || !standsAlone(text, tail.start, tail.end)) return null;
  return hit(kind(tail.digits[0]), run, from, 2, 0.9);

  function masked(of: string, { groups }: Run, at: number, gender: Group | undefined): Hit | null {
    const start = groups[at]!.end;
    if (gender !== undefined && (!residentGap.test(of.slice(start, gender.start)) || !/[1-8]/.test(gender.digits)))
      return null;
    let stars = gender?.end ?? start;
    if (gender === undefined) while (stars < start + 4 && /[-\s–]/.test(of[stars] ?? '')) stars++;
    hidden.lastIndex = stars;
    const found = hidden.exec(of);
    if (found === null || (gender === undefined && found[0].length < 7)) return null;
    const last = gender === undefined ? at : at + 1;
    return {
      kind: kind(gender?.digits),
      start: groups[at]!.start,
      end: stars + found[0].length,
      last,
      confidence: 0.8,
    };
  }
};

const business: Recognize = (text, run, from, about) => {
  const spaced = shaped(text, run, from, [3, 2, 5], narrow);
  const digits = spaced ?? shaped(text, run, from, [10], narrow);
  if (digits === null || (spaced === null && !about().labels.has('brn'))) return null;
  const sum = weighted(digits, [1, 3, 7, 1, 3, 7, 1, 3, 5]) + Math.floor((Number(digits[8]) * 5) / 10);
  if ((10 - (sum % 10)) % 10 !== Number(digits[9])) return null;
  return hit('kr-brn', run, from, spaced === null ? 1 : 3, 1);
};

/** AA-BB-CCCCCC-DD: the region that issued it is 11 to 28, or on older ones its name. */
const koreanLicence: Recognize = (text, run, from, about) => {
  if (shaped(text, run, from, [2, 6, 2], narrow) !== null)
    return about().labels.has('licence') ? hit('licence', run, from, 3, 0.8) : null;
  const spaced = shaped(text, run, from, [2, 2, 6, 2], narrow);
  const digits = spaced ?? shaped(text, run, from, [12], narrow);
  if (digits === null) return null;
  const region = Number(digits.slice(0, 2));
  if (region < 11 || region > 28) return null;
  const isNamed = about().labels.has('licence');
  return isNamed || spaced !== null ? hit('licence', run, from, spaced === null ? 1 : 4, isNamed ? 1 : 0.8) : null;
};

/** What only the words around tell: digits in one piece, or an account's in groups. */
const named: Recognize = (text, run, from, about) => {
  const { digits, start, end } = run.groups[from]!;
  const { length } = digits;
  if (length < 2 || (length < 7 && run.groups.length - from < 2)) return null;
  const { labels, isOther } = about();
  if (isOther || labels.size === 0) return null;
  const isAlone = standsAlone(text, start, end);
  if (isAlone && labels.has('passport') && (length === 8 || length === 9)) return hit('passport', run, from, 1, 0.7);
  if (isAlone && labels.has('licence') && length >= 7 && length <= 12) return hit('licence', run, from, 1, 0.7);
  return labels.has('account') ? account(text, run, from) : null;
};

function account(text: string, { groups }: Run, from: number): Hit | null {
  let size = 0;
  let last = -1;
  for (let i = from; i < groups.length && i < from + 5; i++) {
    if (i > from && !dash.test(gapBetween(text, groups[i - 1]!, groups[i]!))) break;
    size += groups[i]!.digits.length;
    if (size >= 8 && size <= 17) last = i;
  }
  if (last < 0) return null;
  const { start } = groups[from]!;
  const { end } = groups[last]!;
  return standsAlone(text, start, end) ? { kind: 'account', start, end, last, confidence: 0.7 } : null;
}

export const nationalIds: readonly Recognize[] = [resident, ssn, nhs, germanTax, business, koreanLicence, named];
