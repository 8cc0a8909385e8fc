import { describe, expect, test } from 'vitest';
import { hasPersonalData, redact, redactors } from './redact.ts';
import type { Counts } from './redactor.ts';

function clean<T>(value: T): { value: T; counts: Counts } {
  const counts: Counts = {};
  return { value: redact(value, counts), counts };
}
const text = (value: string) => clean(value).value;

describe('a long text that comes again', () => {
  const long = (words: string) => `${words} ${'and so on '.repeat(50)}`;

  test('is redacted and counted every time', () => {
    const once = clean(long('Write to bob@example.com'));
    expect(once).toEqual({ value: long('Write to [email]'), counts: { email: 1 } });
    expect(clean(long('Write to bob@example.com'))).toEqual(once);
  });

  test('is left alone every time when there is nothing in it', () => {
    for (let i = 0; i < 3; i++)
      expect(clean(long('Nothing here'))).toEqual({ value: long('Nothing here'), counts: {} });
  });

  test('is looked at again when it was first seen too deep inside other JSON to be taken apart', () => {
    const hidden = JSON.stringify({ words: long('Write to bob@example.com') }).replace('@', '\\u0040');
    let nested = hidden;
    for (let i = 0; i < 4; i++) nested = JSON.stringify({ nested });
    clean(nested);
    expect(text(hidden)).toBe(JSON.stringify({ words: long('Write to [email]') }));
  });
});

describe('e-mail addresses', () => {
  test.each([
    ['Write to bob@example.com.', 'Write to [email].'],
    ['<Bob.O+tag@mail.example.co.uk>', '<[email]>'],
    ["'amy@example.org'", "'[email]'"],
    ['https://x.example/?mail=bob%40example.com&a=1', 'https://x.example/?mail=[email]&a=1'],
    ['메일은bob@example.com으로 보내세요', '메일은[email]으로 보내세요'],
    ['홍길동@예시.한국 앞', '[email] 앞'],
    ['a@b.co,c@d.io', '[email],[email]'],
    ['mailto:bob@example.com', 'mailto:[email]'],
    ['x@xn--bcher-kva.xn--p1ai', '[email]'],
  ])('%s → %s', (given, expected) => {
    expect(text(given)).toBe(expected);
  });

  test.each([
    'npm i vite@5.4.0-beta.next',
    'icon@2x.png',
    'ask @support please',
    'a @ b',
    'user@localhost',
    'x@.com',
    'f(@decorator) { return a@b }',
  ])('%s is not one', (given) => {
    expect(text(given)).toBe(given);
  });
});

describe('payment cards', () => {
  test.each([
    ['4111111111111111', '[card]'],
    ['4111 1111 1111 1111', '[card]'],
    ['5555-5555-5555-4444', '[card]'],
    ['Amex 3782 822463 10005!', 'Amex [card]!'],
    ['4222222222222', '[card]'],
    ['card 4111 1111 1111 1111 cvc 123', 'card [card] cvc 123'],
    ['4111 1111 1111 1111 12/27', '[card] 12/27'],
    ['번호는 4111111111111111입니다', '번호는 [card]입니다'],
    ['two: 4111111111111111 5555555555554444', 'two: [card] [card]'],
  ])('%s → %s', (given, expected) => {
    expect(text(given)).toBe(expected);
  });

  test.each([
    ['a wrong check digit', '4111 1111 1111 1112'],
    ['a time in milliseconds', '1760000000000'],
    ['a time in microseconds', '1760000000000000'],
    ['an order number in a word', 'ORD4111111111111111'],
    ['a hexadecimal string', 'a4111111111111111f'],
    ['a decimal fraction', '0.4111111111111111'],
    ['twenty digits', '41111111111111111111'],
    ['a phone number', '+49 30 1234 5678'],
    ['a list of years', '1999 2000 2001 2002 2003'],
    ['a UUID', '550e8400-e29b-41d4-a716-446655440000'],
  ])('%s is not one', (_, given) => {
    expect(text(given)).toBe(given);
  });

  test('a number in JSON counts as well', () => {
    expect(clean({ card: 4111111111111111, at: 1760000000000 }).value).toEqual({ card: '[card]', at: 1760000000000 });
  });
});

describe('secrets', () => {
  // Put together at run time, so that scanners of this repository are not alarmed.
  const filler = (n: number) => 'aB3'.repeat(Math.ceil(n / 3)).slice(0, n);
  test.each([
    ['AWS key id', `AKIA${'Q7'.repeat(8)}`],
    ['GitHub', `ghp_${filler(36)}`],
    ['GitHub fine-grained', `github_pat_${filler(82)}`],
    ['GitLab', `glpat-${filler(20)}`],
    ['Slack', `xoxb-${'1'.repeat(12)}-${filler(24)}`],
    ['Stripe', `sk_live_${filler(24)}`],
    ['OpenAI', `sk-proj-${filler(48)}`],
    ['OpenAI, older', `sk-${filler(48)}`],
    ['Anthropic', `sk-ant-api03-${filler(90)}-_AA`],
    ['npm', `npm_${filler(36)}`],
    ['Hugging Face', `hf_${filler(34)}`],
    ['Google', `AIza${filler(35)}`],
    ['JWT', `eyJ${filler(30)}.eyJ${filler(60)}.${filler(43)}`],
  ])('%s tokens are replaced', (_, token) => {
    expect(text(`key=${token}, next`)).toBe('key=[secret], next');
  });

  test('a private key goes from BEGIN to END, and a cut one to where it ends', () => {
    const body = `${'MIIEow'.repeat(10)}\n${'AbC+/9'.repeat(10)}==\n`;
    const [begin, end] = ['-----BEGIN RSA PRIVATE KEY-----\n', '-----END RSA PRIVATE KEY-----'];
    expect(text(`before ${begin}${body}${end} after`)).toBe('before [secret] after');
    expect(text(`before ${begin}${body}, after`)).toBe('before [secret], after');
    expect(text(`${begin}${body}${end}\n${begin}${body}${end}`)).toBe('[secret]\n[secret]');
  });

  test('only the password of a connection string goes, and it is not taken for an address', () => {
    expect(clean('postgres://app:hunter2@db.example.com:5432/x')).toEqual({
      value: 'postgres://app:[secret]@db.example.com:5432/x',
      counts: { secret: 1 },
    });
    expect(text('redis://:s3cret@localhost')).toBe('redis://:[secret]@localhost');
    expect(text('http://localhost:8080/a@b')).toBe('http://localhost:8080/a@b');
  });

  test('authorization headers keep their name', () => {
    expect(text(`Authorization: Bearer ${filler(40)}`)).toBe('Authorization: Bearer [secret]');
    expect(text(`"authorization": "Basic ${filler(24)}"`)).toBe('"authorization": "Basic [secret]"');
    expect(text(`aws_secret_access_key = ${filler(40)}`)).toBe('aws_secret_access_key = [secret]');
  });

  test.each([
    'The bearer of good news arrived',
    'task-force sk-ills and risk-averse',
    'desk-1234567890123456789012345',
    'https://example.com/path:1/x@y',
    'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  ])('%s is not one', (given) => {
    expect(text(given)).toBe(given);
  });
});

describe('whole values', () => {
  test('every string and key is looked at, and counted by kind', () => {
    const given = {
      messages: [{ role: 'user', content: [{ type: 'text', text: 'I am bob@example.com' }] }],
      metadata: { 'amy@example.com': 1, 'eve@example.com': '4111111111111111' },
    };
    expect(clean(given)).toEqual({
      value: {
        messages: [{ role: 'user', content: [{ type: 'text', text: 'I am [email]' }] }],
        metadata: { '[email]': 1, '[email] 2': '[card]' },
      },
      counts: { email: 3, card: 1 },
    });
  });

  test('JSON in a string stays JSON, and an escape hides nothing', () => {
    const given = '{"to": "x\\nbob@example.com", "hidden": "amy\\u0040example.com", "card": 4111111111111111}';
    const { value, counts } = clean(given);
    expect(JSON.parse(value)).toEqual({ to: 'x\n[email]', hidden: '[email]', card: '[card]' });
    expect(counts).toEqual({ email: 2, card: 1 });
    const twice = JSON.stringify({ inner: JSON.stringify({ a: '\tbob@example.com' }) });
    expect(JSON.parse(JSON.parse(clean(twice).value).inner)).toEqual({ a: '\t[email]' });
  });

  test('JSON that was cut off is cleaned as text', () => {
    expect(text('{"to": "bob@example.com", "te')).toBe('{"to": "[email]", "te');
  });

  test('what needs no change is the very same value', () => {
    const given = { a: [{ b: 'nothing here' }], args: '{ "spaced" :  "\\u00e9" }' };
    expect(clean(given).value).toBe(given);
  });

  test('base64 data is not read as text', () => {
    const image = `data:image/png;base64,iVBORw0KGgoAAAANSUhEUg${'4111111111111111/'.repeat(20)}`;
    expect(clean({ url: image })).toEqual({ value: { url: image }, counts: {} });
  });

  test('a value too deep to look through is an error, never let through', () => {
    let deep: unknown = 'bob@example.com';
    for (let i = 0; i < 200; i++) deep = [deep];
    expect(() => clean(deep)).toThrow(/nested deeper than 100/);
  });

  test('an id is checked the same way', () => {
    expect(['bob@example.com', 'user-17', '4111111111111111'].map((id) => hasPersonalData(id))).toEqual([
      true,
      false,
      true,
    ]);
  });
});

describe('time', () => {
  const mega = 1_000_000;
  const fill = (piece: string) => piece.repeat(Math.ceil(mega / piece.length));
  const steps = (value: string) => {
    const started = process.cpuUsage();
    redact(value, {}, { using: [...redactors] }); // a list of its own: nothing is remembered from the run before
    const { user, system } = process.cpuUsage(started);
    return user + system;
  };
  // Ten times the text may take ten times as long; quadratic time would take a hundred times as long.
  test.each([
    ['letters', 'a'],
    ['at signs', '@'],
    ['half addresses', 'a@'],
    ['dotted domain', 'a@a.'],
    ['dashes before an at sign', 'a-'],
    ['digits', '4'],
    ['digit pairs', '4 '],
    ['card groups', '4111 '],
    ['token prefixes', 'sk-'],
    ['half JWTs', 'eyJaaaaaaaaa.'],
    ['URL starts', 'ab://a:'],
    ['bearer', 'bearer '],
    ['AWS words', 'aws secret '],
    ['key beginnings', '-----BEGIN PRIVATE KEY-----'],
    ['percent forty', '%40'],
    ['brackets', '['],
    ['escapes', '\\u0040'],
    ['scheme characters', 'a+'],
    ['quotes', '"'],
  ])('a megabyte of %s stays linear', (_, piece) => {
    const all = fill(piece);
    steps(all.slice(0, mega / 10)); // compile
    const small = Math.min(...[0, 1, 2].map(() => steps(all.slice(0, mega / 10))));
    expect(steps(all)).toBeLessThan(50 * Math.max(small, 2000));
  });
});
