/**
 * Addresses of machines: IPv4, IPv6 and MAC. Addresses that say nothing about anybody (this machine, any, everybody) stay; versions,
 * times and C++ names are none.
 */
import { isIPv6 } from 'node:net';
import { digitAt, gapBetween, isLetter, type Run } from './digits.ts';
import type { Hit } from './national-id.ts';

const nobody = /^(?:127\.|0\.0\.0\.0$|255\.255\.255\.)/;
const versionBefore = /(?:\bv|version|release|버전)\s?$/i;

export function ipv4At(text: string, run: Run, from: number): Hit | null {
  if (from + 4 > run.groups.length || text.charCodeAt(run.groups[from]!.end) !== 46) return null;
  const four = run.groups.slice(from, from + 4);
  for (let i = 0; i < 4; i++) {
    const { digits } = four[i]!;
    if (digits.length > 3 || Number(digits) > 255 || (digits.length > 1 && digits[0] === '0')) return null;
    if (i > 0 && gapBetween(text, four[i - 1]!, four[i]!) !== '.') return null;
  }
  const { start } = four[0]!;
  const { end } = four[3]!;
  const before = text.charCodeAt(start - 1);
  if (isLetter(before) || before === 46 || before === 45 || isLetter(text.charCodeAt(end))) return null;
  if (
    (text[end] === '.' && digitAt(text, end + 1) >= 0) ||
    versionBefore.test(text.slice(Math.max(0, start - 9), start))
  )
    return null;
  if (nobody.test(text.slice(start, end))) return null;
  return { kind: 'ip', start, end, last: from + 3, confidence: 0.95 };
}

const colons = /[0-9A-Fa-f:.]{0,45}/y;
const mac = /^(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$/;
const macDashed = /(?:[0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2}(?![0-9A-Za-z-])/y;
const isHex = (code: number): boolean =>
  (code >= 48 && code <= 58) || (code >= 65 && code <= 70) || (code >= 97 && code <= 102);

type Found = { readonly kind: string; readonly start: number; readonly end: number; readonly confidence: number };

/** Where a digit at `at` belongs to an IPv6 or MAC address. `floor`: nothing before it is looked at. */
export function hexAddressAt(text: string, at: number, floor: number): Found | null {
  let start = at;
  const least = Math.max(floor, at - 45);
  while (start > least && isHex(text.charCodeAt(start - 1))) start--;
  if (isLetter(text.charCodeAt(start - 1)) || digitAt(text, start - 1) >= 0) return null;
  colons.lastIndex = start;
  let end = start + (colons.exec(text)?.[0].length ?? 0);
  while (end > start && (text[end - 1] === '.' || (text[end - 1] === ':' && text[end - 2] !== ':'))) end--;
  if (isLetter(text.charCodeAt(end))) return null;
  const found = text.slice(start, end);
  if (mac.test(found)) return { kind: 'mac', start, end, confidence: 0.95 };
  const groups = found.split(':').filter((group) => group !== '').length;
  if (groups < 4 || !isIPv6(found)) return null;
  return { kind: 'ip', start, end, confidence: 0.95 };
}

const macDotted = /[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}(?![0-9A-Za-z_]|\.[0-9A-Za-z])/y;

/** 001a.2b3c.4d5e, as switches write it; without a letter it is any number. `word`: where one of the three begins. */
export function dottedMacAt(text: string, word: number): Found | null {
  let start = word;
  while (text[start - 1] === '.' && /^[0-9A-Fa-f]{4}$/.test(text.slice(start - 5, start - 1)) && word - start < 10)
    start -= 5;
  if (isLetter(text.charCodeAt(start - 1)) || text[start - 1] === '.' || digitAt(text, start - 1) >= 0) return null;
  macDotted.lastIndex = start;
  const found = macDotted.exec(text)?.[0];
  if (found === undefined || !/[A-Fa-f]/.test(found)) return null;
  return { kind: 'mac', start, end: start + found.length, confidence: 0.9 };
}

export function dashedMacAt(text: string, at: number): Found | null {
  let start = at;
  if (isHex(text.charCodeAt(start - 1)) && text[start - 1] !== ':') start--;
  // Pairs of letters may stand before the first digit.
  while (text[start - 1] === '-' && /^[0-9A-Fa-f]{2}$/.test(text.slice(start - 3, start - 1)) && at - start < 15)
    start -= 3;
  if (isLetter(text.charCodeAt(start - 1)) || text[start - 1] === '-' || digitAt(text, start - 1) >= 0) return null;
  macDashed.lastIndex = start;
  const found = macDashed.exec(text);
  return found === null ? null : { kind: 'mac', start, end: start + found[0].length, confidence: 0.9 };
}
