import { describe, expect, it } from 'vitest';
import { Scan } from './scan.ts';

const scanned = (text: string, cuts: readonly number[] = []) => {
  const bytes = Buffer.from(text);
  const scan = new Scan();
  let at = 0;
  for (const cut of [...cuts, bytes.length]) {
    if (cut > at) scan.feed(bytes.subarray(at, cut));
    at = Math.max(at, cut);
  }
  return { bytes, ...scan.read(bytes) };
};
const codeOf = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    return (error as { code: string }).code;
  }
  return 'accepted';
};

describe('a large body', () => {
  const odd = {
    model: 'ec\\"ho',
    'a\\': '\\',
    messages: [{ role: 'user', content: 'say "[[{" \\\\\\" twice' }, {}],
    user: 'Zoë',
    stream: true,
    n: 2,
    none: null,
    tools: [],
    metadata: { user_id: 'u1', nested: [[['"']]] },
  };

  it('gives the fields of its top level however it is cut into pieces', () => {
    for (const text of [JSON.stringify(odd), JSON.stringify(odd, null, 2)]) {
      const length = Buffer.byteLength(text);
      expect({ ...scanned(text).body }).toEqual(odd);
      for (let at = 1; at < length; at++) expect({ ...scanned(text, [at]).body }).toEqual(odd);
      expect({
        ...scanned(
          text,
          Array.from({ length }, (_, i) => i),
        ).body,
      }).toEqual(odd);
    }
  });

  it('says where the values of model stand, the last of which counts', () => {
    const { bytes, body, modelSpans } = scanned('{"model": "a" , "x":{"model":"no"},"mod\\u0065l":"b"}');
    expect(body.model).toBe('b');
    expect(modelSpans.map(([from, to]) => bytes.toString('utf8', from, to))).toEqual(['"a"', '"b"']);
  });

  it('has long fields recognised without being read', () => {
    const messages = Array.from({ length: 5000 }, () => ({ role: 'user', content: 'x'.repeat(50) }));
    const { body } = scanned(JSON.stringify({ model: 'm', messages, prompt: 'y'.repeat(100_000), tools: [1, 2] }));
    expect((body.messages as unknown[]).length).toBe(5000);
    expect((body.prompt as string).startsWith('yyy')).toBe(true);
    expect(body.tools).toEqual([1, 2]);
  });

  it('is refused when it is too deep, too full or no object', () => {
    expect(codeOf(() => scanned('['.repeat(65)))).toBe('too_deep');
    expect(codeOf(() => scanned(`{"a":[${'[],'.repeat(600_000)}0]}`))).toBe('too_many_values');
    expect(codeOf(() => scanned(`{${'"a":1,'.repeat(5000)}"b":1}`))).toBe('too_many_fields');
    expect(codeOf(() => scanned('{"__proto__":{}}'))).toBe('forbidden_key');
    for (const text of [
      '[]',
      'x',
      '',
      '{',
      '{"a":1}}',
      '{"a":1} {}',
      '{"a":1}x',
      'x{"a":1}',
      '{"a',
      '{"a":tru}',
      '{a:1}',
    ])
      expect(
        codeOf(() => scanned(text)),
        text,
      ).toBe('invalid_json');
  });
});
