/**
 * Credentials by their published shapes: prefixes that vendors chose so that scanners can find them, private key
 * blocks, JWTs, passwords in connection strings and URLs, bearer headers. No guessing by entropy: an order id must not
 * become a secret. One regular expression looks for any prefix; only texts that have one pay for more. Every repeat
 * is bounded or over a class that its follower cannot start with, so time stays linear. Why not secretlint:
 * docs/decisions/0002-secrets.md.
 */
import type { Redactor, Span } from './redactor.ts';

/** The first capture, if any, is what is secret; else the whole match is. */
type Pattern = { readonly hint: RegExp; readonly shape: RegExp };

const b = '(?<![A-Za-z0-9_])'; // not inside a longer word
const e = '(?![A-Za-z0-9_-])';

function prefixed(prefix: string, rest: string): Pattern {
  return { hint: new RegExp(prefix), shape: new RegExp(`${b}(?:${prefix})${rest}${e}`, 'g') };
}

const patterns: readonly Pattern[] = [
  prefixed('A(?:KIA|SIA|GPA|IDA|ROA|NPA)', '[A-Z0-9]{16}'), // AWS key id
  {
    hint: /aws/i, // AWS secret key has no prefix, so only beside its name
    shape: /aws.{0,20}?(?:secret|private).{0,20}?[=:"'\s]{1,5}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])/gis,
  },
  prefixed('gh[pousr]_', '[A-Za-z0-9]{36,255}'), // GitHub
  prefixed('github_pat_', '[A-Za-z0-9_]{22,255}'),
  prefixed('gl(?:pat|oas|dt|rt|cbt|ptt|ft|soat|agent)-', '[A-Za-z0-9_-]{20,64}(?:\\.[A-Za-z0-9_-]{2,32}){0,2}'), // GitLab
  prefixed('xox[abeoprs]-', '[A-Za-z0-9-]{10,255}'), // Slack
  prefixed('xapp-', '[A-Za-z0-9-]{20,255}'),
  { hint: /hooks\.slack/, shape: /hooks\.slack\.com\/(?:services|workflows|triggers)\/([A-Za-z0-9/_-]{20,255})/g },
  prefixed('[srp]k_(?:live|test)_', '[A-Za-z0-9]{10,255}'), // Stripe
  prefixed('whsec_', '[A-Za-z0-9+/=]{20,255}'),
  prefixed('sk-(?:ant|proj|svcacct|admin|or|lf)-', '[A-Za-z0-9_-]{16,255}'), // Anthropic, OpenAI, OpenRouter, Langfuse
  prefixed('sk-', '[A-Za-z0-9]{20,128}'), // OpenAI's older form, and many servers modelled on it
  prefixed('npm_', '[A-Za-z0-9]{36}'),
  prefixed('hf_', '[A-Za-z0-9]{30,64}'), // Hugging Face
  prefixed('AIza', '[A-Za-z0-9_-]{35}'), // Google
  prefixed('ya29\\.', '[A-Za-z0-9_-]{20,1024}'),
  prefixed('GOCSPX-', '[A-Za-z0-9_-]{28}'),
  prefixed('SG\\.', '[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{43}'), // SendGrid
  prefixed('dop_v1_', '[a-f0-9]{64}'), // DigitalOcean
  prefixed('pypi-', '[A-Za-z0-9_-]{50,1000}'),
  prefixed('shp(?:at|ca|pa|ss)_', '[a-fA-F0-9]{32}'), // Shopify
  prefixed('gsk_|xai-|pplx-|r8_', '[A-Za-z0-9]{32,128}'), // Groq, xAI, Perplexity, Replicate
  // JSON Web Token: a header and a body that are both JSON objects in base64url
  prefixed('eyJ', '[A-Za-z0-9_-]{8,4096}\\.eyJ[A-Za-z0-9_-]{8,8192}\\.[A-Za-z0-9_-]{0,2048}'),
  // scheme://user:PASSWORD@host
  { hint: /:\/\//, shape: /[a-z][a-z0-9+.-]{1,30}:\/\/[^\s:/@"'<>]{0,128}:([^\s/@"'<>]{1,256})@(?=[^\s@])/gi },
  { hint: /bearer|basic/i, shape: /(?<![A-Za-z])bearer\s{1,4}([A-Za-z0-9_.~+/=-]{20,4096})/gi },
  { hint: /authorization/i, shape: /authorization["'\s:=]{1,6}basic\s{1,4}([A-Za-z0-9+/=]{8,1024})/gi },
];

const anyHint = new RegExp(
  '(?<![A-Za-z0-9])(?:A(?:KIA|SIA|GPA|IDA|ROA|NPA)[A-Z0-9]|gh[pousr]_|github_pat_|gl[a-z]{2,5}-|xox[a-z]-|xapp-|' +
    '[srp]k_(?:live|test)_|whsec_|sk-|npm_|hf_|AIza|ya29\\.|GOCSPX-|SG\\.|dop_v1_|pypi-|shp[a-z]{2}_|gsk_|xai-|pplx-|' +
    'r8_|eyJ|[Bb]earer|BEARER|[Aa]uthorization|AUTHORIZATION|[Aa]ws|AWS)|PRIVATE KEY|hooks\\.slack|:\\/\\/[^\\s/]{0,386}@',
);

export const secret: Redactor = {
  name: 'secret',
  find(text) {
    const spans: Span[] = [];
    if (!anyHint.test(text)) return spans;
    for (const { hint, shape } of patterns) {
      if (!hint.test(text)) continue;
      shape.lastIndex = 0;
      for (let match = shape.exec(text); match !== null; match = shape.exec(text)) {
        const inner = match[1];
        const start = inner === undefined ? match.index : match.index + match[0].lastIndexOf(inner);
        const end = inner === undefined ? match.index + match[0].length : start + inner.length;
        spans.push({ start, end, kind: 'secret' });
      }
    }
    if (text.includes('PRIVATE KEY')) findKeyBlocks(text, spans);
    return spans;
  },
};

const keyBegin = /-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----/g;
/** What a key's body is made of, also inside JSON (escaped line ends); for blocks whose end is missing. */
const keyBody = /[A-Za-z0-9+/=\s\\]{0,20000}/y;

/** From BEGIN to END; a block that was cut off is secret as far as it looks like one. */
function findKeyBlocks(text: string, spans: Span[]): void {
  let end = 0;
  keyBegin.lastIndex = 0;
  for (let match = keyBegin.exec(text); match !== null; match = keyBegin.exec(text)) {
    const body = match.index + match[0].length;
    if (end >= 0 && end < body) end = text.indexOf('-----END ', body);
    let stop: number;
    if (end >= 0 && end - body <= 20_000) {
      const close = text.indexOf('-----', end + 9);
      stop = close >= 0 && close - end < 64 ? close + 5 : end + 8;
    } else {
      keyBody.lastIndex = body;
      stop = body + (keyBody.exec(text)?.[0].length ?? 0);
    }
    spans.push({ start: match.index, end: stop, kind: 'secret' });
    keyBegin.lastIndex = stop;
  }
}
