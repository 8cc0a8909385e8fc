/**
 * Credentials by their published shapes (prefixes that vendors chose so that scanners can find them, Pawl's own tokens,
 * private key blocks, JWTs, passwords in URLs, authorization headers) and by the name that stands before them
 * (`password: …`, `api_key=…`). No guessing by entropy: an order id must not become a secret.
 *
 * Two regular expressions find the places where one may begin; only there is anything else tried. It stays linear whatever
 * the text: what is recognised is skipped, what is not was given up after a bounded number of characters, and the two
 * shapes that have to read further (JWTs, URLs) never read a character twice. Why not secretlint:
 * docs/decisions/0002-secrets.md.
 */
import type { Redactor, Span } from './redactor.ts';

/** Where a credential may begin by its own shape. Without what must stand before it, which would cost half the speed. */
const beginning = new RegExp(
  'A(?:KIA|SIA|GPA|IDA|ROA|NPA)[A-Z0-9]|gh[pousr]_|github_pat_|gl[a-z]{2,5}-|xox[a-z]-|xapp-|[srp]k_(?:live|test)_|' +
    'whsec_|sk-|npm_|hf_|AIza|ya29\\.|GOCSPX-|SG\\.|dop_v1_|pypi-|shp[a-z]{2}_|gsk_|xai-|pplx-|r8_|pawl_|eyJ|' +
    '[Bb]earer\\s|BEARER\\s|[Aa]ws|AWS|-----BEGIN |hooks\\.slack|:\\/\\/',
  'g',
);
/** Where one may stand behind its name, from the name's last common letters on. */
const name = new RegExp(
  '(?:ass[Ww]|ASSW|ass[Pp]hrase|ASSPHRASE|ass[Cc]ode|ASSCODE|[Pp]w|PW|ennwort|ENNWORT|비밀번호|비번|암호|' +
    '[Kk]ey|KEY|ecret|ECRET|oken|OKEN|uthorization|UTHORIZATION)' +
    '[A-Za-z0-9_-]{0,20}["\'\\\\]{0,3}\\s{0,3}(?:[:=]|(?:is|was|to|는|은|가|이)\\s)',
  'g',
);

const word = '(?<![A-Za-z0-9_])'; // not inside a longer word
const end = '(?![A-Za-z0-9_-])';
/** A run that ends where it ends: nothing follows it in the pattern, so it is never given back. */
const vendor = (prefix: string, rest: string) => new RegExp(`${word}(?:${prefix})${rest}`, 'y');

/** Between a name and its value, also inside JSON that is inside JSON: `": "`, ` = '`, `\": \"`. */
const is = '["\'\\\\]{0,3}\\s{0,3}[:=]{1,2}>?\\s{0,3}';
const quoted = '\\\\?"([^"\\n]{4,256})|\\\\?\'([^\'\\n]{4,256})';
/** Not what stands for a value: `<password>`, `${PASSWORD}`, `***`, or what was replaced before. */
const password = '([^\\s"\'`,;<>[\\](){}$*%\\\\.&][^\\s"\'`,;\\\\&]{3,})';
const token = '[A-Za-z0-9_.~+/=-]';

const bearer = /(?<![A-Za-z])bearer\s{1,4}([A-Za-z0-9_.~+/=-]{20,})/iy;
/** An AWS secret has no prefix, so only beside its name. */
const aws = /aws.{0,20}?(?:secret|private).{0,20}?[=:"'\s]{1,5}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])/isy;

/** By the first letter. The first group that took part, if any, is what is secret; else the whole match is. */
const shapes: Readonly<Record<string, readonly RegExp[]>> = {
  A: [
    aws,
    vendor('A(?:KIA|SIA|GPA|IDA|ROA|NPA)', `[A-Z0-9]{16}${end}`), // AWS key id
    vendor('AIza', '[A-Za-z0-9_-]{35,}'), // Google
  ],
  g: [
    vendor('gh[pousr]_', '[A-Za-z0-9]{36,}'), // GitHub
    vendor('github_pat_', '[A-Za-z0-9_]{22,}'),
    vendor('gl(?:pat|oas|dt|rt|cbt|ptt|ft|soat|agent)-', '[A-Za-z0-9_-]{20,}(?:\\.[A-Za-z0-9_-]{2,32}){0,2}'), // GitLab
    vendor('gsk_', '[A-Za-z0-9]{32,}'), // Groq
  ],
  x: [
    vendor('xox[abeoprs]-', '[A-Za-z0-9-]{10,}'), // Slack
    vendor('xapp-', '[A-Za-z0-9-]{20,}'),
    vendor('xai-', '[A-Za-z0-9]{32,}'), // xAI
  ],
  h: [
    vendor('hf_', '[A-Za-z0-9]{30,}'), // Hugging Face
    /hooks\.slack\.com\/(?:services|workflows|triggers)\/([A-Za-z0-9/_-]{20,})/y,
  ],
  s: [
    vendor('sk_(?:live|test)_', '[A-Za-z0-9]{10,}'), // Stripe
    vendor('sk-(?:ant|proj|svcacct|admin|or|lf)-', '[A-Za-z0-9_-]{16,}'), // Anthropic, OpenAI, OpenRouter, Langfuse
    vendor('sk-', '[A-Za-z0-9]{20,}'), // OpenAI's older form, and many servers modelled on it
    vendor('shp(?:at|ca|pa|ss)_', `[a-fA-F0-9]{32}${end}`), // Shopify
  ],
  r: [vendor('rk_(?:live|test)_', '[A-Za-z0-9]{10,}'), vendor('r8_', '[A-Za-z0-9]{32,}')], // Stripe, Replicate
  p: [
    vendor('pawl_(?:admin_)?', '[A-Za-z0-9_-]{20,}'), // our own
    vendor('pk_(?:live|test)_', '[A-Za-z0-9]{10,}'), // Stripe
    vendor('pypi-', '[A-Za-z0-9_-]{50,}'),
    vendor('pplx-', '[A-Za-z0-9]{32,}'), // Perplexity
  ],
  w: [vendor('whsec_', '[A-Za-z0-9+/=]{20,}')],
  n: [vendor('npm_', `[A-Za-z0-9]{36}${end}`)],
  y: [vendor('ya29\\.', '[A-Za-z0-9_-]{20,}')],
  G: [vendor('GOCSPX-', `[A-Za-z0-9_-]{28}${end}`)],
  S: [vendor('SG\\.', `[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{43}${end}`)], // SendGrid
  a: [aws],
  B: [bearer],
  b: [bearer],
  d: [vendor('dop_v1_', `[a-f0-9]{64}${end}`)], // DigitalOcean
};

/** From the letters that `name` finds on. Bounded before the value, open only in it. */
const named: readonly RegExp[] = [
  new RegExp(`(?:ass(?:word|wd|phrase|wort)|ennwort|비밀번호|pwd)[a-z0-9_-]{0,20}${is}(?:${quoted}|${password})`, 'iy'),
  // "my password is hunter2": of words that are none, at least a digit and a letter tell it.
  // So do they behind a word that is often another: a passcode, the Korean for cipher, two letters.
  /(?:ass(?:word|wd|phrase|wort|code)|ennwort|비밀번호|비번|암호|pwd|(?<![A-Za-z0-9])pw)["'\\]{0,3}\s{0,3}(?:[:=]{1,2}\s{0,3}|(?:is|was|to|는|은|가|이)\s{1,3})["'\\]{0,3}((?![[<{(*%$])(?=[^\s"',;]{0,63}?\d)(?=[^\s"',;]{0,63}?[A-Za-z!@#$%^&*])[^\s"',;]{5,64})/iy,
  // `api_key`, `apiKey`, `Secret Access Key`: what stands before `key` says which it is.
  new RegExp(`(?<=(?:api|access|secret|private|auth|account|master)[-_ ]?)key${is}["'\\\\]{0,2}(${token}{6,})`, 'iy'),
  new RegExp(`(?:ecret|oken)[a-z0-9_-]{0,20}${is}["'\\\\]{0,2}((?=${token}{0,63}?\\d|${token}{16})${token}{6,})`, 'iy'),
  new RegExp(`uthorization["'\\\\\\s:=]{1,8}(?:basic|bearer|token|digest)\\s{1,4}(${token}{4,})`, 'iy'),
];

type Found = { readonly start: number; readonly end: number };
/** What a text has told so far, so that nothing in it is read twice. */
type Memory = { segmentEnd: number; keyEnd: number };

export const secret: Redactor = {
  name: 'secret',
  find(text) {
    const spans: Span[] = [];
    const memory: Memory = { segmentEnd: 0, keyEnd: 0 };
    find(text, beginning, spans, (at, began) => read(text, at, began, memory));
    find(text, name, spans, (at) => firstMatch(named, text, at), true);
    return spans;
  },
};

function find(
  text: string,
  where: RegExp,
  spans: Span[],
  look: (at: number, began: string) => Found | null,
  isContextual = false,
): void {
  where.lastIndex = 0;
  for (let hit = where.exec(text); hit !== null; hit = where.exec(text)) {
    const found = look(hit.index, hit[0]);
    if (found !== null) spans.push({ ...found, kind: 'secret', isContextual });
    where.lastIndex = Math.max(hit.index + 1, found?.end ?? 0);
  }
}

function read(text: string, at: number, began: string, memory: Memory): Found | null {
  if (began === '://') return urlPassword(text, at + 3);
  if (began === 'eyJ') return jsonWebToken(text, at, memory);
  if (began === '-----BEGIN ') return keyBlock(text, at, memory);
  return firstMatch(shapes[began[0] as string] ?? [], text, at);
}

function firstMatch(patterns: readonly RegExp[], text: string, at: number): Found | null {
  for (const pattern of patterns) {
    const found = matchAt(pattern, text, at);
    if (found !== null) return found;
  }
  return null;
}

function matchAt(shape: RegExp, text: string, at: number): Found | null {
  shape.lastIndex = at;
  const match = shape.exec(text);
  if (match === null) return null;
  const inner = match[1] ?? match[2] ?? match[3];
  const end = at + match[0].length; // where there is a group, nothing follows it
  return { start: inner === undefined ? at : end - inner.length, end };
}

/** scheme://user:PASSWORD@host. The last `@` counts, because people do not escape the ones in their passwords. */
function urlPassword(text: string, from: number): Found | null {
  let colon = -1;
  let last = -1;
  let stop = from;
  for (; stop < text.length; stop++) {
    const code = text.charCodeAt(stop);
    // Space, quotes, / < > ? # and \ end it; one of them comes before the next `://`.
    if (code <= 32 || code === 34 || code === 35 || code === 39 || code === 47 || code === 92) break;
    if (code === 60 || code === 62 || code === 63 || code === 96) break;
    if (code === 58 && colon < 0) colon = stop;
    else if (code === 64) last = stop;
  }
  const host = last + 1 < stop;
  return colon >= 0 && last > colon + 1 && host && text[colon + 1] !== '[' ? { start: colon + 1, end: last } : null;
}

const isWord = (code: number): boolean =>
  (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 48 && code <= 57) || code === 95;
const isToken = (code: number): boolean => isWord(code) || code === 45;

function segmentEnd(text: string, from: number): number {
  let at = from;
  while (at < text.length && isToken(text.charCodeAt(at))) at++;
  return at;
}

/** A header and a body that are both JSON objects in base64url, with a dot between and one behind. */
function jsonWebToken(text: string, at: number, memory: Memory): Found | null {
  // Of several beginnings in one segment the first was answered for all.
  if (at < memory.segmentEnd || isWord(text.charCodeAt(at - 1))) return null;
  const header = segmentEnd(text, at);
  memory.segmentEnd = header;
  if (header - at < 11 || !text.startsWith('.eyJ', header)) return null;
  const body = segmentEnd(text, header + 1);
  if (body - header < 12 || text[body] !== '.') return null;
  return { start: at, end: segmentEnd(text, body + 1) };
}

const keyBegin = /-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----/y;
/** What a key's body is made of, also inside JSON (escaped line ends); for blocks whose end is missing. */
const keyBody = /[A-Za-z0-9+/=\s\\]{0,20000}/y;
const MAX_KEY = 20_000;

/** From BEGIN to END; a block that was cut off is secret as far as it looks like one. */
function keyBlock(text: string, at: number, memory: Memory): Found | null {
  keyBegin.lastIndex = at;
  const opened = keyBegin.exec(text);
  if (opened === null) return null;
  const body = at + opened[0].length;
  if (memory.keyEnd >= 0 && memory.keyEnd < body) memory.keyEnd = text.indexOf('-----END ', body);
  const { keyEnd } = memory;
  if (keyEnd >= 0 && keyEnd - body <= MAX_KEY) {
    const close = text.slice(keyEnd + 9, keyEnd + 73).indexOf('-----');
    return { start: at, end: close >= 0 ? keyEnd + 9 + close + 5 : keyEnd + 8 };
  }
  keyBody.lastIndex = body;
  return { start: at, end: body + (keyBody.exec(text)?.[0].length ?? 0) };
}
