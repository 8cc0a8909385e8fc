/**
 * Text ↔ token ids, over @huggingface/tokenizers and the checkpoint's tokenizer.json. What this file adds: plain
 * encoding, in which no text can become a control token; decoding that streams, so that a character split across
 * tokens is held back until it is whole; and the list of control tokens. Training one is in tokenizer-train.ts.
 */
import { Tokenizer as HuggingFaceTokenizer } from '@huggingface/tokenizers';
import { EngineError } from '../errors.ts';
import { asReference } from './pre-tokenizer.ts';

export type Tokenizer = {
  /** Ids are below this; a model's own vocabulary may be larger (padded). */
  readonly vocabulary: number;
  /** Every control token (`added_tokens`), by its text. */
  readonly controls: ReadonlyMap<string, Control>;
  /** The strings a chat template may refer to: eos_token, bos_token … from tokenizer_config.json. */
  readonly named: Readonly<Record<string, string>>;
  /** As Hugging Face encodes: control tokens written in the text are recognised, the post-processor adds its own. */
  encode(text: string): number[];
  /** The text as nothing but text: `<|im_end|>` written by a user stays ten characters. */
  encodePlain(text: string): number[];
  decode(tokens: Iterable<number>, options?: DecodeOptions): string;
  /** The same, token by token. */
  stream(options?: DecodeOptions): TextStream;
};

export type Control = {
  readonly id: number;
  /** Left out of decoded text. `<think>` and `<tool_call>` are control tokens too, but part of the text. */
  readonly special: boolean;
  readonly lstrip: boolean;
  readonly rstrip: boolean;
};

export type DecodeOptions = { /** Default true. */ readonly skipSpecial?: boolean };

export type TextStream = {
  /** The text this token completes; empty while a character is unfinished. */
  push(token: number): string;
  /** What was held back at the end; an unfinished character becomes U+FFFD. */
  end(): string;
};

/** From a checkpoint's files (see readModelFiles); undefined if it has no tokenizer. */
export function tokenizerFromFiles(files: ReadonlyMap<string, Uint8Array>): Tokenizer | undefined {
  const json = files.get('tokenizer.json');
  if (!json) return undefined;
  const settings = (name: string) => {
    const bytes = files.get(name);
    return bytes ? parseObject(name, bytes) : {};
  };
  // Older folders name their special tokens in a file of their own.
  const config = { ...settings('special_tokens_map.json'), ...settings('tokenizer_config.json') };
  return createTokenizer(parseObject('tokenizer.json', json), config);
}

function parseObject(name: string, bytes: Uint8Array): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch (cause) {
    throw new EngineError(`${name} is not JSON: ${(cause as Error).message}.`, { cause });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new EngineError(`${name} is not a JSON object.`);
  }
  return value as Record<string, unknown>;
}

export function createTokenizer(json: Record<string, unknown>, config: Record<string, unknown> = {}): Tokenizer {
  let inner: HuggingFaceTokenizer;
  try {
    const { pre_tokenizer: cuts = null, ...rest } = json;
    inner = new HuggingFaceTokenizer({ added_tokens: [], ...rest, pre_tokenizer: asReference(cuts) }, config);
  } catch (cause) {
    throw new EngineError(`tokenizer.json cannot be used: ${(cause as Error).message}`, { cause });
  }
  const { normalizer, pre_tokenizer: preTokenizer, model } = inner;
  if (!model) throw new EngineError('tokenizer.json holds no model.');
  const controls = new Map<string, Control>();
  const controlTexts = new Map<number, string>();
  for (const { id, content, special, lstrip, rstrip } of inner.get_added_tokens_decoder().values()) {
    controls.set(content, { id, special, lstrip, rstrip });
    controlTexts.set(id, content);
  }

  const toId = (token: string): number => {
    const id = inner.token_to_id(token) ?? model.unk_token_id;
    if (id === undefined)
      throw new EngineError(`The tokenizer has no token for ${JSON.stringify(token.slice(0, 40))}.`);
    return id;
  };

  const encodePlain = (text: string): number[] => {
    if (text === '') return [];
    const normal = normalizer ? normalizer(text) : text;
    if (normal === '') return [];
    const pieces = preTokenizer ? preTokenizer(normal) : [normal];
    const ids: number[] = (model(pieces) as string[]).map(toId);
    const words = new Set(ids.flatMap((id) => controlTexts.get(id) ?? []));
    if (words.size === 0) return ids;
    // Some vocabularies hold control tokens among the ordinary ones. Cutting the text inside such words, all of them at
    // once, leaves no way to spell one in one token.
    return cutInside(text, words).flatMap(encodePlain);
  };

  const isByteLevel = usesByteLevel(json.decoder);
  const known = new Map<number, Uint8Array>();
  /** Ids beyond the tokenizer (a padded vocabulary) have no text. */
  const bytesOf = (token: number): Uint8Array => {
    let bytes = known.get(token);
    if (bytes === undefined) {
      bytes = Uint8Array.from(inner.id_to_token(token) ?? '', (char: string) => charToByte.get(char) ?? 63);
      if (bytes.length > 0) known.set(token, bytes);
    }
    return bytes;
  };
  const stream = ({ skipSpecial = true }: DecodeOptions = {}): TextStream => {
    const control = (token: number): string | undefined => {
      const text = controlTexts.get(token);
      if (text === undefined) return undefined;
      return skipSpecial && controls.get(text)!.special ? '' : text;
    };
    return isByteLevel
      ? byteLevelStream(control, bytesOf)
      : windowStream(
          control,
          (tokens) => inner.decode(tokens, { clean_up_tokenization_spaces: false }),
          (token) => inner.id_to_token(token) !== undefined,
        );
  };

  return {
    vocabulary: Math.max(inner.get_vocab(false).size, ...[...controlTexts.keys()].map((id) => id + 1)),
    controls,
    named: namedTokens(config),
    encode: (text) => inner.encode(text).ids,
    encodePlain,
    decode(tokens, options) {
      const text = stream(options);
      let result = '';
      for (const token of tokens) result += text.push(token);
      return result + text.end();
    },
    stream,
  };
}

function cutInside(text: string, words: ReadonlySet<string>): string[] {
  const cuts = new Set<number>();
  for (const word of words) {
    let at = word.length < 2 ? -1 : text.indexOf(word);
    if (at === -1)
      throw new EngineError(`The tokenizer turns plain text into the control token ${JSON.stringify(word)}.`);
    for (; at !== -1; at = text.indexOf(word, at + 1)) cuts.add(at + 1);
  }
  const ends = [...cuts].sort((a, b) => a - b);
  return [...ends, text.length].map((end, i) => text.slice(ends[i - 1] ?? 0, end));
}

function namedTokens(config: Record<string, unknown>): Record<string, string> {
  const named: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(config)) {
    if (!name.endsWith('_token')) continue;
    const text = typeof value === 'object' && value !== null ? (value as { content?: unknown }).content : value;
    if (typeof text === 'string') named[name] = text;
  }
  return named;
}

function usesByteLevel(decoder: unknown): boolean {
  return typeof decoder === 'object' && decoder !== null && (decoder as { type?: unknown }).type === 'ByteLevel';
}

/**
 * GPT-2's way to write bytes as printable characters: those that print stand for themselves, the other 68 are moved up
 * to 256 and beyond in order.
 */
export const byteToChar: readonly string[] = (() => {
  const prints = (b: number) => (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
  let moved = 256;
  return Array.from({ length: 256 }, (_, b) => String.fromCharCode(prints(b) ? b : moved++));
})();
const charToByte = new Map(byteToChar.map((char, byte) => [char, byte]));

function byteLevelStream(
  control: (token: number) => string | undefined,
  bytesOf: (token: number) => Uint8Array,
): TextStream {
  let decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const end = () => {
    const rest = decoder.decode();
    decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    return rest;
  };
  return {
    push(token) {
      const text = control(token);
      if (text !== undefined) return end() + text;
      return decoder.decode(bytesOf(token), { stream: true });
    },
    end,
  };
}

/**
 * For decoders that are not byte by byte (SentencePiece and others): the text of a token is what it adds to the decoded
 * window before it, held back while the window ends in an unfinished character.
 */
function windowStream(
  control: (token: number) => string | undefined,
  decode: (tokens: number[]) => string,
  isKnown: (token: number) => boolean,
): TextStream {
  const maxHeld = 8; // no character needs more bytes than 4; beyond this the bytes are simply broken
  let before: number[] = [];
  let held: number[] = [];
  const take = (final: boolean): string => {
    if (held.length === 0) return '';
    const known = before.length === 0 ? '' : decode(before);
    const text = decode([...before, ...held]);
    if (!final && text.endsWith('\ufffd') && held.length < maxHeld) return '';
    before = held;
    held = [];
    return text.slice(known.length);
  };
  return {
    push(token) {
      const text = control(token);
      if (text !== undefined) {
        const rest = take(true);
        before = [];
        return rest + text;
      }
      if (!isKnown(token)) return '';
      held.push(token);
      return take(false);
    },
    end() {
      const rest = take(true);
      before = [];
      return rest;
    },
  };
}
