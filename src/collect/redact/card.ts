/**
 * Payment card numbers: 13 to 19 digits in one piece or in the groups printed on cards, with a known issuer's prefix
 * and a right Luhn sum (`validator`). One digit string in ten passes Luhn by chance, so shape matters: timestamps and
 * most order numbers have no issuer's prefix, and digits inside a word, a hex string or a decimal fraction do not count.
 */
import validator from 'validator';
import type { Redactor, Span } from './redactor.ts';

type Group = { start: number; end: number };

/** The ways cards are grouped; the first group is always four. */
const shapes = new Set(['4,4,4,4', '4,4,4,4,1', '4,4,4,4,2', '4,4,4,4,3', '4,6,5', '4,6,4', '4,4,5']);
/** Cheap question first: is there a run of digits and single separators long enough at all? */
const longEnough = /\d(?:[ \u00a0-]?\d){12}/;

export const card: Redactor = {
  name: 'card',
  find(text) {
    const spans: Span[] = [];
    if (text.length < 13 || !longEnough.test(text)) return spans;
    let groups: Group[] = [];
    let at = 0;
    while (at < text.length) {
      if (!isDigit(text.charCodeAt(at))) {
        at++;
        continue;
      }
      const start = at;
      while (at < text.length && isDigit(text.charCodeAt(at))) at++;
      groups.push({ start, end: at });
      const separated = isSeparator(text.charCodeAt(at)) && isDigit(text.charCodeAt(at + 1));
      if (separated) at++;
      else {
        judge(text, groups, spans);
        groups = [];
      }
    }
    return spans;
  },
};

function judge(text: string, groups: readonly Group[], spans: Span[]): void {
  for (let i = 0; i < groups.length; i++) {
    const first = groups[i] as Group;
    const length = first.end - first.start;
    if (length >= 13 && length <= 19) {
      if (free(text, first.start, first.end) && validator.isCreditCard(text.slice(first.start, first.end))) {
        spans.push({ ...first, kind: 'card' });
      }
      continue;
    }
    if (length !== 4) continue;
    let shape = '4';
    let digits = text.slice(first.start, first.end);
    let taken = 0;
    // Longest shape that is a card wins: a security code or date after the number is not part of it.
    for (let j = i + 1; j < groups.length && j < i + 5; j++) {
      const next = groups[j] as Group;
      shape += `,${next.end - next.start}`;
      digits += text.slice(next.start, next.end);
      if (shapes.has(shape) && free(text, first.start, next.end) && validator.isCreditCard(digits)) taken = j;
    }
    if (taken > 0) {
      spans.push({ start: first.start, end: (groups[taken] as Group).end, kind: 'card' });
      i = taken;
    }
  }
}

/** Not part of a word, a hex string or a decimal number. An escaped letter (`\n`) before it does not count as a word. */
function free(text: string, start: number, end: number): boolean {
  const before = text.charCodeAt(start - 1);
  if (isWord(before) && text[start - 2] !== '\\') return false;
  if (before === 46 && isDigit(text.charCodeAt(start - 2))) return false;
  const after = text.charCodeAt(end);
  if (isWord(after)) return false;
  return !(after === 46 && isDigit(text.charCodeAt(end + 1)));
}

const isDigit = (code: number) => code >= 48 && code <= 57;
const isSeparator = (code: number) => code === 32 || code === 45 || code === 0xa0;
const isWord = (code: number) => (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || code === 95;
