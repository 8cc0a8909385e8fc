/**
 * E-mail addresses, found from the '@' outwards with bounded steps, so no text can make it slow. Also `%40` in URLs,
 * and addresses in other scripts. ASCII is tried first on both sides, because in Korean or Japanese text words touch
 * the address ("메일은bob@example.com으로"). Not addresses: package@1.2.3, icon@2x.png, @mentions.
 */
import type { Redactor, Span } from './redactor.ts';

const MAX_LOCAL = 64;
const MAX_DOMAIN = 253;
const notDomains = new Set(['png', 'jpg', 'jpeg', 'gif', 'svg', 'webp', 'js', 'css', 'ts', 'tsx']);
const asciiLocal = /[A-Za-z0-9._%+'=/~#$&*!^`{|}?-]/;
const asciiDomain = /[A-Za-z0-9.-]/;
const anyWord = /[\p{L}\p{N}._-]/u;
const domainShape = /^(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,62})\.){1,12}(\p{L}{2,24}|xn--[a-z0-9-]{2,59})$/iu;
const version = /^\d+\.\d+\./;

export const email: Redactor = {
  name: 'email',
  find(text) {
    const spans: Span[] = [];
    for (let at = text.indexOf('@'); at >= 0; at = text.indexOf('@', at + 1)) add(spans, text, at, at + 1);
    if (text.includes('%40')) {
      for (let at = text.indexOf('%40'); at >= 0; at = text.indexOf('%40', at + 1)) add(spans, text, at, at + 3);
    }
    return spans;
  },
};

function add(spans: Span[], text: string, at: number, after: number): void {
  const end = domainEnd(text, after, asciiDomain) ?? domainEnd(text, after, anyWord);
  if (end === null) return;
  const start = localStart(text, at, asciiLocal) ?? localStart(text, at, anyWord);
  if (start !== null) spans.push({ start, end, kind: 'email' });
}

function localStart(text: string, at: number, allowed: RegExp): number | null {
  let start = at;
  while (start > 0 && at - start < MAX_LOCAL && allowed.test(text[start - 1] as string)) start--;
  // Quotes, slashes and marks are legal in an address but far more often belong to the text around it.
  const quoted = text.slice(start, at);
  const inner = Math.max(
    ...["'", '/', '=', '?', '&', '`', '{', '|', '*', '#', '$', '!'].map((c) => quoted.lastIndexOf(c)),
  );
  start += inner + 1;
  while (start < at && text[start] === '.') start++;
  return start < at ? start : null;
}

function domainEnd(text: string, after: number, allowed: RegExp): number | null {
  let end = after;
  while (end < text.length && end - after < MAX_DOMAIN && allowed.test(text[end] as string)) end++;
  // A sentence's full stop, or words glued on by a stop: give up labels from the right until it is a domain.
  let domain = text.slice(after, end);
  for (let tries = 0; tries < 4 && domain !== ''; tries++) {
    domain = domain.replace(/[.-]+$/, '');
    const top = domainShape.exec(domain)?.[1];
    if (top !== undefined) {
      return version.test(domain) || notDomains.has(top.toLowerCase()) ? null : after + domain.length;
    }
    domain = domain.slice(0, Math.max(0, domain.lastIndexOf('.')));
  }
  return null;
}
