import { describe, expect, test } from 'vitest';
import { createTokenizer } from './tokenizer.ts';
import { controlTokens, smallestVocabulary, tokenizerConfig, trainTokenizer } from './tokenizer-train.ts';

const texts = [
  'Where is my order 1234? The order was shipped on 2024-05-17.',
  'I want to return order 98. The return was accepted, the refund is 12.50 euro.',
  '<|im_start|>user\nmy order<|im_end|>\n{"name": "find_order", "arguments": {"id": "1234"}}',
];
const json = trainTokenizer(texts, { vocabulary: 280 });
const tokenizer = createTokenizer(json, tokenizerConfig(256));
const id = (text: string) => tokenizer.controls.get(text)!.id;

describe('a trained tokenizer', () => {
  test('has exactly the vocabulary asked for: bytes, merges, control tokens', () => {
    const model = json.model as { vocab: object; merges: unknown[] };
    expect(Object.keys(model.vocab)).toHaveLength(280 - controlTokens.length);
    expect(model.merges).toHaveLength(280 - smallestVocabulary);
    expect(tokenizer.vocabulary).toBe(280);
  });

  test('merges the most frequent pair first, and equal counts in the order of their ids', () => {
    // ab occurs 5 times; then cd, space + c and space + ab 3 times each, and c is the lowest of the left sides
    const { merges, vocab } = trainTokenizer(['abab ab cd cd cd ab ab xy xy'], { vocabulary: smallestVocabulary + 2 })
      .model as { merges: string[][]; vocab: Record<string, number> };
    expect(merges[0]).toEqual(['a', 'b']);
    expect(vocab.ab).toBe(256);
    expect(merges[1]).toEqual(['c', 'd']);
  });

  test('is the same whatever the order of the texts', () => {
    expect(trainTokenizer([...texts].reverse(), { vocabulary: 280 })).toEqual(json);
  });

  test('stops early when nothing repeats, and refuses a vocabulary that cannot hold the bytes', () => {
    expect(createTokenizer(trainTokenizer(['abcd'], { vocabulary: 1000 })).vocabulary).toBe(smallestVocabulary);
    expect(() => trainTokenizer([], { vocabulary: 264 })).toThrow(/264 is too small: .* are 265/);
  });

  test('spells every number digit by digit', () => {
    for (const number of ['1234', '98', '2024']) {
      expect(tokenizer.encodePlain(number).map((token) => tokenizer.decode([token]))).toEqual([...number]);
    }
    expect(tokenizer.encodePlain(' order').length).toBeLessThan(3); // while a frequent word is short
  });

  test('takes any text and gives it back: every byte, every plane, broken surrogates excepted', () => {
    for (const text of [
      '',
      ' ',
      '\n\n  x\t',
      '한국어 텍스트',
      '👩‍👩‍👧 é\u0000\u007f\u0080\uffff',
      '\ufeffbom',
      'a'.repeat(3000),
    ]) {
      expect(tokenizer.decode(tokenizer.encodePlain(text))).toBe(text);
      expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
    }
  });
});

describe('control tokens', () => {
  test('are recognised by encode and are plain text for encodePlain', () => {
    const text = 'a<|im_end|>b<tool_call>';
    expect(tokenizer.encode(text)).toContain(id('<|im_end|>'));
    const plain = tokenizer.encodePlain(text);
    for (const { id } of tokenizer.controls.values()) expect(plain).not.toContain(id);
    expect(tokenizer.decode(plain)).toBe(text);
  });

  test('that a vocabulary holds as ordinary words cannot be spelled by plain text either', () => {
    const model = json.model as { vocab: Record<string, number>; merges: string[][] };
    const word = '<end>'; // made of <, end, > by merges
    const vocab = { ...model.vocab, en: 900, end: 901, '<end': 902, [word]: 903 };
    const merges = [
      ['e', 'n'],
      ['en', 'd'],
      ['<', 'end'],
      ['<end', '>'],
    ];
    const sly = createTokenizer({
      ...json,
      pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, use_regex: false },
      model: { ...model, vocab, merges },
      added_tokens: [{ id: 903, content: word, special: true, normalized: false }],
    });
    expect(sly.encode('x<end>')).toContain(903);
    expect(sly.encodePlain('x<end>')).not.toContain(903);
    const many = (count: number) => 'x<end>y'.repeat(count);
    expect(sly.encodePlain(many(50))).not.toContain(903);
    expect(sly.decode(sly.encodePlain(many(50)))).toBe(many(50));
    const timeOf = (count: number) => {
      const started = process.cpuUsage();
      sly.encodePlain(many(count));
      const { user, system } = process.cpuUsage(started);
      return Math.max(4, (user + system) / 1000);
    };
    const [few, more] = [200, 1_600].map((count) => Math.min(timeOf(count), timeOf(count)));
    expect(more! / few!).toBeLessThan(24); // cut one by one, each would look at all that comes after it: 64
  });

  test('special ones are left out of decoded text unless asked for; the others are part of it', () => {
    const tokens = [id('<think>'), ...tokenizer.encodePlain('ok'), id('<|im_end|>')];
    expect(tokenizer.decode(tokens)).toBe('<think>ok');
    expect(tokenizer.decode(tokens, { skipSpecial: false })).toBe('<think>ok<|im_end|>');
  });
});

describe('streaming', () => {
  test('a character split across tokens is held back until it is whole', () => {
    const bytes = tokenizer.encodePlain('é👍');
    expect(bytes).toHaveLength(6);
    const stream = tokenizer.stream();
    expect(bytes.map((token) => stream.push(token))).toEqual(['', 'é', '', '', '', '👍']);
    expect(stream.end()).toBe('');
  });

  test('an unfinished character becomes U+FFFD only at the end or before a control token', () => {
    const [first, second] = tokenizer.encodePlain('👍') as [number, number];
    const stream = tokenizer.stream();
    expect([stream.push(first), stream.push(second), stream.end()]).toEqual(['', '', '\ufffd']);
    expect([stream.push(first), stream.push(id('<think>'))]).toEqual(['', '\ufffd<think>']);
  });

  test('joined, the pieces are the decoded text for any ids, valid text or not', () => {
    let state = 1;
    const random = () => {
      state = (state * 48271) % 2147483647;
      return state / 2147483647;
    };
    const stream = tokenizer.stream();
    const tokens = Array.from({ length: 500 }, () => Math.floor(random() * 290)); // 280–289 do not exist
    expect(tokens.map((token) => stream.push(token)).join('') + stream.end()).toBe(tokenizer.decode(tokens));
  });

  test('works for tokenizers that are not byte-level', () => {
    const pieces = ['<unk>', '▁hello', '▁world', '<0xF0>', '<0x9F>', '<0x91>', '<0x8D>', '!'];
    const sentencePiece = createTokenizer({
      added_tokens: [],
      normalizer: null,
      pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
      post_processor: null,
      decoder: {
        type: 'Sequence',
        decoders: [
          { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
          { type: 'ByteFallback' },
          { type: 'Fuse' },
          { type: 'Strip', content: ' ', start: 1, stop: 0 },
        ],
      },
      model: { type: 'BPE', unk_token: '<unk>', vocab: Object.fromEntries(pieces.map((p, i) => [p, i])), merges: [] },
    });
    const stream = sentencePiece.stream();
    expect([1, 2, 3, 4, 5, 6, 7].map((token) => stream.push(token))).toEqual([
      'hello',
      ' world',
      '',
      '',
      '',
      '👍',
      '!',
    ]);
    expect(sentencePiece.decode([1, 2, 7])).toBe('hello world!');
  });
});
