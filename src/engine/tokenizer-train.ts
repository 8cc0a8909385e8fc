/**
 * Trains a byte-level BPE tokenizer and writes it as a `tokenizer.json` that Hugging Face loads. For small models of our
 * own: a few hundred tokens that fit one domain. Any text can be encoded, because all 256 bytes are tokens. The words
 * between which nothing merges follow GPT-2's and Qwen's rule; digits stand alone, so numbers are spelled the same way
 * everywhere. Deterministic: equal counts merge in the order of their ids.
 * BPE: Sennrich, Haddow, Birch 2016, arXiv:1508.07909
 */
import { byteToChar } from './tokenizer.ts';

/** Qwen's control tokens. Special ones are left out of decoded text, the others are part of it. */
export const controlTokens: readonly { readonly content: string; readonly special: boolean }[] = [
  { content: '<|endoftext|>', special: true },
  { content: '<|im_start|>', special: true },
  { content: '<|im_end|>', special: true },
  { content: '<tool_call>', special: false },
  { content: '</tool_call>', special: false },
  { content: '<tool_response>', special: false },
  { content: '</tool_response>', special: false },
  { content: '<think>', special: false },
  { content: '</think>', special: false },
];

export const smallestVocabulary = 256 + controlTokens.length;

const wordPattern = (digits: string) =>
  `'(?:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`;

/** `vocabulary` counts everything: bytes, merges, control tokens. Fewer come out if the texts hold no more pairs. */
export function trainTokenizer(
  texts: Iterable<string>,
  options: { readonly vocabulary: number; readonly splitDigits?: boolean },
): Record<string, unknown> {
  const { vocabulary, splitDigits = true } = options;
  if (!Number.isSafeInteger(vocabulary) || vocabulary < smallestVocabulary) {
    throw new Error(
      `A vocabulary of ${vocabulary} is too small: bytes and control tokens alone are ${smallestVocabulary}.`,
    );
  }
  const pattern = wordPattern(splitDigits ? '\\p{N}' : '\\p{N}+');
  const tokens = [...byteToChar].sort();
  const merges = learnMerges(countWords(texts, new RegExp(pattern, 'gu')), tokens, vocabulary - controlTokens.length);
  const first = tokens.length;
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: controlTokens.map(({ content, special }, i) => ({
      id: first + i,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special,
    })),
    normalizer: null,
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        { type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false },
        { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
      ],
    },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: '',
      end_of_word_suffix: '',
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges,
    },
  };
}

/** What goes beside it: which token ends a turn, which pads. `chat_template` belongs here or in chat_template.jinja. */
export function tokenizerConfig(context: number): Record<string, unknown> {
  return {
    tokenizer_class: 'PreTrainedTokenizerFast',
    model_max_length: context,
    bos_token: null,
    eos_token: '<|im_end|>',
    pad_token: '<|endoftext|>',
    unk_token: null,
    clean_up_tokenization_spaces: false,
  };
}

/** Words as byte characters → how often they occur. Control tokens in the texts are cut out: they never merge. */
function countWords(texts: Iterable<string>, pattern: RegExp): Map<string, number> {
  const control = new RegExp(controlTokens.map(({ content }) => content.replaceAll('|', '\\|')).join('|'), 'g');
  const counts = new Map<string, number>();
  for (const text of texts) {
    for (const part of text.split(control)) {
      for (const word of part.match(pattern) ?? []) {
        const spelled = Array.from(Buffer.from(word), (byte) => byteToChar[byte]).join('');
        counts.set(spelled, (counts.get(spelled) ?? 0) + 1);
      }
    }
  }
  return counts;
}

type Pair = { readonly left: number; readonly right: number; count: number; readonly words: Set<number> };

/** Appends the merged tokens to `tokens` until there are `limit`, and returns the merges in order. */
function learnMerges(counts: ReadonlyMap<string, number>, tokens: string[], limit: number): [string, string][] {
  const idOf = new Map(tokens.map((token, id) => [token, id]));
  // In a fixed order, so that the result does not depend on the order of the texts.
  const words = [...counts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([word, count]) => ({
      ids: Array.from(word, (char) => idOf.get(char)!),
      count,
    }));
  const pairs = new Map<number, Pair>();
  const keyOf = (left: number, right: number) => left * 2 ** 24 + right;
  const change = (left: number, right: number, by: number, word: number) => {
    const key = keyOf(left, right);
    let pair = pairs.get(key);
    if (!pair) {
      pair = { left, right, count: 0, words: new Set() };
      pairs.set(key, pair);
    }
    pair.count += by;
    if (by > 0) pair.words.add(word);
    if (pair.count === 0) pairs.delete(key);
  };
  for (const [index, { ids, count }] of words.entries()) {
    for (let i = 1; i < ids.length; i++) change(ids[i - 1]!, ids[i]!, count, index);
  }

  const merges: [string, string][] = [];
  while (tokens.length < limit) {
    let best: Pair | undefined;
    for (const pair of pairs.values()) {
      if (
        best === undefined ||
        pair.count > best.count ||
        (pair.count === best.count && (pair.left < best.left || (pair.left === best.left && pair.right < best.right)))
      ) {
        best = pair;
      }
    }
    if (best === undefined || best.count < 2) break; // what occurs once teaches nothing
    const { left, right } = best;
    const joined = tokens[left]! + tokens[right]!;
    // Two roads can lead to one token (a+bc, ab+c); it keeps its first id.
    const known = idOf.get(joined);
    const merged = known ?? tokens.length;
    if (known === undefined) {
      tokens.push(joined);
      idOf.set(joined, merged);
    }
    merges.push([tokens[left]!, tokens[right]!]);
    for (const index of [...best.words]) {
      const { ids, count } = words[index]!;
      const after: number[] = [];
      for (let i = 0; i < ids.length; i++) {
        if (ids[i] === left && ids[i + 1] === right) {
          after.push(merged);
          i++;
        } else after.push(ids[i]!);
      }
      if (after.length === ids.length) continue;
      for (let i = 1; i < ids.length; i++) change(ids[i - 1]!, ids[i]!, -count, index);
      for (let i = 1; i < after.length; i++) change(after[i - 1]!, after[i]!, count, index);
      words[index]!.ids = after;
    }
  }
  return merges;
}
