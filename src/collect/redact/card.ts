/**
 * Payment card numbers: 13 to 19 digits in one piece or in the groups printed on cards, with a known issuer's prefix
 * and a right Luhn sum (`validator`). Between groups may stand what people and tables put there: up to three spaces, tabs,
 * line ends, dots or dashes of any kind; digits may be those of another script. One digit string in ten passes Luhn by
 * chance, so shape matters: timestamps and most order numbers have no issuer's prefix, and digits inside a word, a hex
 * string or a decimal fraction do not count.
 */
import validator from 'validator';
import type { Redactor, Span } from './redactor.ts';

type Group = { readonly start: number; readonly end: number };

const MAX_GAP = 3;
/** Cheap question first: is there a run of digits and separators long enough at all? */
const digits = '\\d٠-٩۰-۹०-९０-９';
const gap = '\\s.\\-_‐-―−﹘﹣－';
const longEnough = new RegExp(`[${digits}](?:(?:[${gap}]|\\\\[nrt]){0,${MAX_GAP}}[${digits}]){12}`);
const isGap = new RegExp(`[${gap}]`);

export const card: Redactor = {
  name: 'card',
  find(text) {
    const spans: Span[] = [];
    if (text.length < 13 || !longEnough.test(text)) return spans;
    let groups: Group[] = [];
    let at = 0;
    while (at < text.length) {
      if (digitAt(text, at) < 0) {
        at++;
        continue;
      }
      const start = at;
      while (digitAt(text, at) >= 0) at++;
      groups.push({ start, end: at });
      const next = gapEnd(text, at);
      if (next >= 0) at = next;
      else {
        judge(text, groups, spans);
        groups = [];
      }
    }
    return spans;
  },
};

/** Where the digits after a gap begin; -1 when what follows is none. */
function gapEnd(text: string, from: number): number {
  let at = from;
  for (let n = 0; n < MAX_GAP && at < text.length; n++) {
    if (digitAt(text, at) >= 0) return at;
    const escaped = text[at] === '\\' && /[nrt]/.test(text[at + 1] ?? '');
    if (!escaped && !isGap.test(text[at] as string)) return -1;
    at += escaped ? 2 : 1;
  }
  return digitAt(text, at) >= 0 ? at : -1;
}

function judge(text: string, groups: readonly Group[], spans: Span[]): void {
  for (let i = 0; i < groups.length; i++) {
    const first = groups[i] as Group;
    const length = lengthOf(first);
    if (length >= 13 && length <= 19) {
      if (!inDecimal(text, first) && isCard(text, groups, i, i)) spans.push({ ...first, kind: 'card' });
      continue;
    }
    if (length !== 4) continue;
    // Longest shape that is a card wins: a security code or date after the number is not part of it.
    const last = lastOfShape(groups, i).findLast((j) => isCard(text, groups, i, j));
    if (last === undefined) continue;
    spans.push({ start: first.start, end: (groups[last] as Group).end, kind: 'card' });
    i = last;
  }
}

const lengthOf = (group: Group | undefined): number => (group === undefined ? 0 : group.end - group.start);
const none: readonly number[] = [];

/** Where a number could end whose first group, of four, is at `i`: the ways cards are grouped, the shortest first. */
function lastOfShape(groups: readonly Group[], i: number): readonly number[] {
  const [second, third] = [lengthOf(groups[i + 1]), lengthOf(groups[i + 2])];
  if (second === 6) return third === 4 || third === 5 ? [i + 2] : none;
  if (second !== 4) return none;
  if (third === 5) return [i + 2];
  if (third !== 4 || lengthOf(groups[i + 3]) !== 4) return none;
  const fifth = lengthOf(groups[i + 4]);
  return fifth >= 1 && fifth <= 3 ? [i + 3, i + 4] : [i + 3];
}

/** The library asks every issuer's pattern, so the cheap questions come first. */
function isCard(text: string, groups: readonly Group[], from: number, to: number): boolean {
  const { start } = groups[from] as Group;
  const { end } = groups[to] as Group;
  const leading = digitAt(text, start);
  if (leading === 0 || leading === 7 || leading === 9 || !inNoWord(text, start, end)) return false;
  let sum = 0;
  let twice = false;
  for (let g = to; g >= from; g--) {
    const group = groups[g] as Group;
    for (let at = group.end - 1; at >= group.start; at--, twice = !twice) {
      const digit = digitAt(text, at);
      sum += twice ? digit * 2 - (digit > 4 ? 9 : 0) : digit;
    }
  }
  if (sum % 10 !== 0) return false;
  let number = '';
  for (let at = start; at < end; at++) if (digitAt(text, at) >= 0) number += digitAt(text, at);
  return validator.isCreditCard(number);
}

/** Not part of a word or a hex string. An escaped letter (`\n`) before it does not count as a word. */
function inNoWord(text: string, start: number, end: number): boolean {
  return !(isWord(text.charCodeAt(start - 1)) && text[start - 2] !== '\\') && !isWord(text.charCodeAt(end));
}

const inDecimal = (text: string, { start, end }: Group): boolean =>
  (text[start - 1] === '.' && digitAt(text, start - 2) >= 0) || (text[end] === '.' && digitAt(text, end + 1) >= 0);

/** ASCII, Arabic, Persian, Devanagari, full width: each ten in a row. */
const zeros = [0x30, 0x660, 0x6f0, 0x966, 0xff10];

/** The digit's value; -1 where there is none. */
function digitAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code <= 0x39) return code >= 0x30 ? code - 0x30 : -1;
  if (!(code >= 0x660)) return -1;
  for (const zero of zeros) if (code >= zero && code < zero + 10) return code - zero;
  return -1;
}

const isWord = (code: number) => (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || code === 95;
