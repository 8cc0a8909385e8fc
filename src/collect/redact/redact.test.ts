import { describe, expect, test } from 'vitest';
import { hasPersonalData, redact } from './redact.ts';
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
    expect(once).toEqual({ value: long('Write to [EMAIL_1]'), counts: { email: 1 } });
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
    expect(text(hidden)).toBe(JSON.stringify({ words: long('Write to [EMAIL_1]') }));
  });
});

describe('e-mail addresses', () => {
  test.each([
    ['Write to bob@example.com.', 'Write to [EMAIL_1].'],
    ['<Bob.O+tag@mail.example.co.uk>', '<[EMAIL_1]>'],
    ["'amy@example.org'", "'[EMAIL_1]'"],
    ['https://x.example/?mail=bob%40example.com&a=1', 'https://x.example/?mail=[EMAIL_1]&a=1'],
    ['메일은bob@example.com으로 보내세요', '메일은[EMAIL_1]으로 보내세요'],
    ['홍길동@예시.한국 앞', '[EMAIL_1] 앞'],
    ['a@b.co,c@d.io', '[EMAIL_1],[EMAIL_2]'],
    ['a@b.co, A@B.co', '[EMAIL_1], [EMAIL_1]'],
    ['mailto:bob@example.com', 'mailto:[EMAIL_1]'],
    ['x@xn--bcher-kva.xn--p1ai', '[EMAIL_1]'],
    ["o'brien@example.com", '[EMAIL_1]'],
    ['An jörg@müller.de und zoë.ångström@example.com', 'An [EMAIL_1] und [EMAIL_2]'],
    ['почта: иван.petrov@example.ru', 'почта: [EMAIL_1]'],
    ['jo\u0308rg@example.com', '[EMAIL_1]'],
    ['Log: {"to":"bob\\u0040example.com"', 'Log: {"to":"[EMAIL_1]"'],
    ['bob＠example.com', '[EMAIL_1]'],
    ['bob&#64;example.com', '[EMAIL_1]'],
    [`${'a'.repeat(100)}@example.com`, '[EMAIL_1]'],
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
    ['4111111111111111', '[CARD_1]'],
    ['4111 1111 1111 1111', '[CARD_1]'],
    ['5555-5555-5555-4444', '[CARD_1]'],
    ['Amex 3782 822463 10005!', 'Amex [CARD_1]!'],
    ['4222222222222', '[CARD_1]'],
    ['card 4111 1111 1111 1111 cvc 123', 'card [CARD_1] cvc 123'],
    ['4111 1111 1111 1111 12/27', '[CARD_1] 12/27'],
    ['번호는 4111111111111111입니다', '번호는 [CARD_1]입니다'],
    ['two: 4111111111111111 5555555555554444', 'two: [CARD_1] [CARD_2]'],
    ['4111.1111.1111.1111', '[CARD_1]'],
    ['4111\t1111\t1111\t1111', '[CARD_1]'],
    ['4111  1111  1111  1111', '[CARD_1]'],
    ['4111\n1111\n1111\n1111', '[CARD_1]'],
    ['4111\\n1111\\n1111\\n1111', '[CARD_1]'],
    ['4111 - 1111 - 1111 - 1111', '[CARD_1]'],
    ['4111–1111—1111‑1111', '[CARD_1]'],
    ['４１１１ １１１１ １１１１ １１１１', '[CARD_1]'],
    ['٤١١١١١١١١١١١١١١١', '[CARD_1]'],
    ['1. 4111 1111 1111 1111.', '1. [CARD_1].'],
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
    ['a list of years', '1999 2000 2001 2002 2003'],
    ['a UUID', '550e8400-e29b-41d4-a716-446655440000'],
  ])('%s is not one', (_, given) => {
    expect(text(given)).toBe(given);
  });

  test('a number in JSON counts as well', () => {
    expect(clean({ card: 4111111111111111, at: 1760000000000 }).value).toEqual({ card: '[CARD_1]', at: 1760000000000 });
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
    ['long ones of Anthropic', `sk-ant-api03-${filler(600)}`],
    ['Pawl’s client', `pawl_${filler(20)}-${filler(22)}`],
    ['Pawl’s admin', `pawl_admin_${filler(20)}_${filler(22)}`],
    ['JWT', `eyJ${filler(30)}.eyJ${filler(60)}.${filler(43)}`],
  ])('%s tokens are replaced', (_, token) => {
    expect(text(`key=${token}, next`)).toBe('key=[SECRET_1], next');
  });

  test('a private key goes from BEGIN to END, and a cut one to where it ends', () => {
    const body = `${'MIIEow'.repeat(10)}\n${'AbC+/9'.repeat(10)}==\n`;
    const [begin, end] = ['-----BEGIN RSA PRIVATE KEY-----\n', '-----END RSA PRIVATE KEY-----'];
    expect(text(`before ${begin}${body}${end} after`)).toBe('before [SECRET_1] after');
    expect(text(`before ${begin}${body}, after`)).toBe('before [SECRET_1], after');
    expect(text(`${begin}${body}${end}\n${begin}${body}${end}`)).toBe('[SECRET_1]\n[SECRET_1]');
  });

  test('only the password of a connection string goes, and it is not taken for an address', () => {
    expect(clean('postgres://app:hunter2@db.example.com:5432/x')).toEqual({
      value: 'postgres://app:[SECRET_1]@db.example.com:5432/x',
      counts: { secret: 1 },
    });
    expect(text('redis://:s3cret@localhost')).toBe('redis://:[SECRET_1]@localhost');
    expect(text('http://localhost:8080/a@b')).toBe('http://localhost:8080/a@b');
  });

  test('authorization headers keep their name', () => {
    expect(text(`Authorization: Bearer ${filler(40)}`)).toBe('Authorization: Bearer [SECRET_1]');
    expect(text(`"authorization": "Basic ${filler(24)}"`)).toBe('"authorization": "Basic [SECRET_1]"');
    expect(text(`aws_secret_access_key = ${filler(40)}`)).toBe('aws_secret_access_key = [SECRET_1]');
  });

  test.each([
    ['password: hunter2', 'password: [SECRET_1]'],
    ['Password = "correct horse battery"', 'Password = "[SECRET_1]"'],
    ['비밀번호: abcd1234!', '비밀번호: [SECRET_1]'],
    ['pw: Tr0ub4dor&3', 'pw: [SECRET_1]'],
    ['PW=abc12345, thanks', 'PW=[SECRET_1], thanks'],
    ['비번은 qwer1234! 입니다', '비번은 [SECRET_1] 입니다'],
    ['암호: qwer1234!', '암호: [SECRET_1]'],
    ['Kennwort: geheim', 'Kennwort: [SECRET_1]'],
    ['passcode is 12ab34', 'passcode is [SECRET_1]'],
    ['?user=bob&password=hunter2&x=1', '?user=bob&password=[SECRET_1]&x=1'],
    ['DB_PASSWORD=hunter2', 'DB_PASSWORD=[SECRET_1]'],
    ['api_key=abcdef123456', 'api_key=[SECRET_1]'],
    ['x-api-key: abcdef123456', 'x-api-key: [SECRET_1]'],
    ['apiKey: "abcdef123456"', 'apiKey: "[SECRET_1]"'],
    ['client_secret=abcdef123456', 'client_secret=[SECRET_1]'],
    ['access_token: abcdef123456abcdef', 'access_token: [SECRET_1]'],
    ['said "api_key\\": \\"abcdef123456\\" there', 'said "api_key\\": \\"[SECRET_1]\\" there'],
    ['Authorization: Bearer abc123', 'Authorization: Bearer [SECRET_1]'],
    ['postgres://app:p@ss:word@db.example.com/x', 'postgres://app:[SECRET_1]@db.example.com/x'],
  ])('%s → %s', (given, expected) => {
    expect(text(given)).toBe(expected);
    expect(text(expected)).toBe(expected); // what was replaced is not replaced again
  });

  test('a field whose name says so holds one, whatever it looks like', () => {
    const given = {
      password: 'open sesame',
      pin: 1,
      login: { dbPassword: 12345678, api_key: 'abcdef1', token: 'next' },
    };
    expect(clean(given)).toEqual({
      value: {
        password: '[SECRET_1]',
        pin: 1,
        login: { dbPassword: '[SECRET_2]', api_key: '[SECRET_3]', token: 'next' },
      },
      counts: { secret: 3 },
    });
    const schema = { properties: { password: { type: 'string' } }, required: ['password'], password: '<password>' };
    expect(clean(schema).value).toBe(schema);
  });

  test.each([
    'The bearer of good news arrived',
    'max_tokens: 4096, total_tokens=12',
    'The secret: everybody knows',
    'Forgot your password? Reset it here',
    'password: [SECRET_1]',
    'password: <password>',
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
        messages: [{ role: 'user', content: [{ type: 'text', text: 'I am [EMAIL_1]' }] }],
        metadata: { '[EMAIL_2]': 1, '[EMAIL_3]': '[CARD_1]' },
      },
      counts: { email: 3, card: 1 },
    });
  });

  test('JSON in a string stays JSON, and an escape hides nothing', () => {
    const given = '{"to": "x\\nbob@example.com", "hidden": "amy\\u0040example.com", "card": 4111111111111111}';
    const { value, counts } = clean(given);
    expect(JSON.parse(value)).toEqual({ to: 'x\n[EMAIL_1]', hidden: '[EMAIL_2]', card: '[CARD_1]' });
    expect(counts).toEqual({ email: 2, card: 1 });
    const twice = JSON.stringify({ inner: JSON.stringify({ a: '\tbob@example.com' }) });
    expect(JSON.parse(JSON.parse(clean(twice).value).inner)).toEqual({ a: '\t[EMAIL_1]' });
  });

  test('JSON that was cut off is cleaned as text', () => {
    expect(text('{"to": "bob@example.com", "te')).toBe('{"to": "[EMAIL_1]", "te');
  });

  test('what needs no change is the very same value', () => {
    const given = { a: [{ b: 'nothing here' }], args: '{ "spaced" :  "\\u00e9" }' };
    expect(clean(given).value).toBe(given);
  });

  test('base64 data is not read as text', () => {
    const image = `data:image/png;base64,iVBORw0KGgoAAAANSUhEUg${'4111111111111111/'.repeat(20)}`;
    expect(clean({ url: image })).toEqual({ value: { url: image }, counts: {} });
  });

  test.each([
    'data:x;base64,',
    'data:image/png;base64,',
    'data:text/plain;base64,',
    'data:image/png;base64,iVBORw0KGgo',
  ])('text that only says it is media (%s…) is read', (head) => {
    expect(text(`${head}bob@example.com`)).not.toContain('bob');
    expect(text(`${head} 4111111111111111`)).not.toContain('4111');
    expect(text(`${head}${'A'.repeat(300)} bob@example.com`)).not.toContain('bob');
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
