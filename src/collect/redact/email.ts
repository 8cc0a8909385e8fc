/**
 * E-mail addresses, found from the at sign outwards. Also the forms an at sign takes in URLs, in JSON inside text, in
 * HTML and in full width, and addresses in other scripts. ASCII (before the sign also what Europe writes) is tried first on both
 * sides, because in Korean or Japanese text words touch the address ("메일은bob@example.com으로"). Not addresses: package@1.2.3, icon@2x.png, @mentions.
 * Linear: neither side reaches past the next at sign, nor into an address already found.
 */
import type { Redactor, Span } from './redactor.ts';

const signs = ['@', '%40', '\\u0040', '＠', '&#64;'];
const MAX_LOCAL = 256;
const MAX_DOMAIN = 253;
const notDomains = new Set(['png', 'jpg', 'jpeg', 'gif', 'svg', 'webp', 'js', 'css', 'ts', 'tsx']);
const anyWord = /[\p{L}\p{N}._-]/u;
const domainShape = /^(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,62})\.){1,12}(\p{L}{2,24}|xn--[a-z0-9-]{2,59})$/iu;
const version = /^\d+\.\d+\./;

type Allowed = (text: string, at: number) => boolean;

/** Which ASCII characters; quotes, slashes and other marks are legal but far more often belong to the text around. */
const table = (characters: RegExp) =>
  Uint8Array.from({ length: 128 }, (_, code) => (characters.test(String.fromCharCode(code)) ? 1 : 0));
const localTable = table(/[A-Za-z0-9._%+~^}-]/);
const domainTable = table(/[A-Za-z0-9.-]/);
const letters = table(/[A-Za-z]/);
const asciiDomain: Allowed = (text, at) => domainTable[text.charCodeAt(at)] === 1;
/** Of scripts with spaces between words, so that what touches an address belongs to it: jörg@. */
const spaced = /[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{M}]/u;
/** An apostrophe counts in the middle of a name only: o'brien@, but 'amy@. */
const spacedLocal: Allowed = (text, at) => {
  const code = text.charCodeAt(at);
  if (code > 127) return spaced.test(text[at] as string);
  return localTable[code] === 1 || (code === 39 && letters[text.charCodeAt(at - 1)] === 1);
};
const anyScript: Allowed = (text, at) => anyWord.test(text[at] as string);

export const email: Redactor = {
  name: 'email',
  find(text) {
    const spans: Span[] = [];
    for (const sign of signs) {
      let floor = 0; // the end of the address before
      for (let at = text.indexOf(sign); at >= 0; at = text.indexOf(sign, at + sign.length)) {
        const span = around(text, at, at + sign.length, floor);
        if (span === null) continue;
        spans.push(span);
        floor = span.end;
      }
    }
    return spans;
  },
};

function around(text: string, at: number, after: number, floor: number): Span | null {
  const end = domainEnd(text, after);
  if (end === null) return null;
  const start = localStart(text, at, floor, spacedLocal) ?? localStart(text, at, floor, anyScript);
  return start === null ? null : { start, end, kind: 'email' };
}

function localStart(text: string, at: number, floor: number, allowed: Allowed): number | null {
  const least = Math.max(floor, at - MAX_LOCAL);
  let start = at;
  while (start > least && allowed(text, start - 1)) start--;
  while (start < at && text[start] === '.') start++;
  return start < at ? start : null;
}

function domainEnd(text: string, after: number): number | null {
  const ascii = runEnd(text, after, asciiDomain);
  const found = domainIn(text, after, ascii);
  // Where ASCII ended before ASCII, the run in any script is the same.
  if (found !== null || !(text.charCodeAt(ascii) > 127)) return found;
  return domainIn(text, after, runEnd(text, ascii, anyScript));
}

function runEnd(text: string, from: number, allowed: Allowed): number {
  let end = from;
  while (end < text.length && end - from < MAX_DOMAIN && allowed(text, end)) end++;
  return end;
}

/** A sentence's full stop, or words glued on by a stop: labels are given up from the right until it is a domain. */
function domainIn(text: string, after: number, end: number): number | null {
  let domain = text.slice(after, end);
  for (let tries = 0; tries < 4 && domain.includes('.'); tries++) {
    domain = withoutTrailing(domain);
    const top = domainShape.exec(domain)?.[1];
    if (top !== undefined) {
      return version.test(domain) || notDomains.has(top.toLowerCase()) ? null : after + domain.length;
    }
    domain = domain.slice(0, Math.max(0, domain.lastIndexOf('.')));
  }
  return null;
}

/** A pattern for this, `[.-]+$`, would try every run of dots and dashes to its end. */
function withoutTrailing(domain: string): string {
  let end = domain.length;
  while (end > 0 && (domain[end - 1] === '.' || domain[end - 1] === '-')) end--;
  return domain.slice(0, end);
}
