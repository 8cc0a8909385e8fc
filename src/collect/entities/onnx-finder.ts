/**
 * A token-classification model in a folder (model.onnx and its weights, tokenizer.json, config.json with id2label), on ONNX Runtime. Words are
 * tokenised one by one, so that places in the text are known without the tokenizer telling them, and a word has the
 * label of its first token, as such models are trained. Labels are BIO or BIOES: B-, I-, E-, S- and a kind. Long texts go
 * in windows of as many tokens as models commonly take, a window beginning at a word.
 */
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Tokenizer } from '@huggingface/tokenizers';
import { z } from 'zod';
import { ConfigError } from '../../errors.ts';
import type { Span } from '../redact/redactor.ts';
import { entityKind, type FindEntities } from './finder.ts';

const WINDOW = 384;
const inputs = ['input_ids', 'attention_mask', 'token_type_ids'];
const word = /[\p{L}\p{M}\p{N}]+|[^\s\p{L}\p{M}\p{N}]/gu;
const modelConfig = z.object({ id2label: z.record(z.string(), z.string()) });

export type OnnxSettings = { readonly folder: string; readonly minScore: number };
type Placed = { readonly start: number; readonly end: number; readonly tokens: readonly number[] };

export async function openOnnxFinder({ folder, minScore }: OnnxSettings): Promise<FindEntities> {
  const missing = (name: string) => (cause: unknown) => {
    throw new ConfigError(`pii.model.folder: ${join(folder, name)} cannot be read.`, { cause });
  };
  const read = async (name: string): Promise<Buffer> => readFile(join(folder, name)).catch(missing(name));
  const parsed = modelConfig.safeParse(JSON.parse((await read('config.json')).toString('utf8')));
  if (!parsed.success) throw new ConfigError(`pii.model.folder: ${folder}/config.json has no id2label.`);
  const labels = Object.entries(parsed.data.id2label).sort((a, b) => Number(a[0]) - Number(b[0]));
  const names = labels.map(([, label]) => label);
  const tokenizer = new Tokenizer(JSON.parse((await read('tokenizer.json')).toString('utf8')), {});
  const { InferenceSession, Tensor } = await import('onnxruntime-node');
  await access(join(folder, 'model.onnx')).catch(missing('model.onnx'));
  // By its path: weights may lie in a file beside it.
  const session = await InferenceSession.create(join(folder, 'model.onnx'), { intraOpNumThreads: 1 });
  const unknown = session.inputNames.filter((name) => !inputs.includes(name));
  if (unknown.length > 0)
    throw new ConfigError(
      `pii.model.folder: model.onnx asks for ${unknown.join(', ')}; known are ${inputs.join(', ')}.`,
    );
  const frame = tokenizer.encode('').ids; // what it puts around a text: [CLS] [SEP], or nothing
  const [before, behind] = [frame.slice(0, Math.ceil(frame.length / 2)), frame.slice(Math.ceil(frame.length / 2))];

  async function score(ids: readonly number[]): Promise<readonly { readonly label: string; readonly score: number }[]> {
    const tensor = (value: (i: number) => bigint) =>
      new Tensor(
        'int64',
        BigInt64Array.from(ids, (_, i) => value(i)),
        [1, ids.length],
      );
    const feeds: Record<string, InstanceType<typeof Tensor>> = {
      input_ids: tensor((i) => BigInt(ids[i]!)),
      attention_mask: tensor(() => 1n),
      token_type_ids: tensor(() => 0n),
    };
    const wanted = Object.fromEntries(session.inputNames.map((name) => [name, feeds[name]!]));
    const result = await session.run(wanted);
    const logits = result[session.outputNames[0]!]!.data as Float32Array;
    return ids.map((_, i) => best(logits.subarray(i * names.length, (i + 1) * names.length)));
  }

  function best(row: Float32Array): { label: string; score: number } {
    const most = Math.max(...row);
    const sum = row.reduce((total, value) => total + Math.exp(value - most), 0);
    return { label: names[row.indexOf(most)] ?? 'O', score: 1 / sum };
  }

  async function find(text: string): Promise<Span[]> {
    const words: Placed[] = [...text.matchAll(word)].map(({ index, 0: found }) => ({
      start: index,
      end: index + found.length,
      tokens: tokenizer.encode(/\s/.test(text[index - 1] ?? '') ? ` ${found}` : found, { add_special_tokens: false })
        .ids,
    }));
    const spans: Span[] = [];
    for (let from = 0; from < words.length; ) {
      let to = from;
      for (let size = 0; to < words.length && (to === from || size + words[to]!.tokens.length <= WINDOW); to++)
        size += words[to]!.tokens.length;
      const window = words.slice(from, to);
      const scored = await score([...before, ...window.flatMap(({ tokens }) => tokens), ...behind]);
      let at = before.length;
      const labelled = window.map((one) => {
        const of = scored[at] ?? { label: 'O', score: 0 };
        at += one.tokens.length;
        return { ...one, ...of };
      });
      for (const span of decode(labelled)) if ((span.confidence ?? 0) >= minScore) spans.push(span);
      from = to;
    }
    return spans;
  }

  return async (texts) => {
    const found: Span[][] = [];
    for (const text of texts) found.push(text.trim().length < 2 ? [] : await find(text));
    return found;
  };
}

type Labelled = { readonly start: number; readonly end: number; readonly label: string; readonly score: number };

/** BIO and BIOES: B and S begin, I and E go on with what is open if it is of the same kind, and begin where nothing is. */
export function decode(words: readonly Labelled[]): Span[] {
  const spans: { -readonly [K in keyof Span]: Span[K] }[] = [];
  let open: string | null = null;
  for (const { start, end, label, score } of words) {
    const [, part, name] = /^([BIES])[-_](.+)$/.exec(label) ?? [];
    const kind = name === undefined ? null : entityKind(name);
    const last = spans.at(-1);
    if (kind === null) open = null;
    else if ((part === 'I' || part === 'E') && open === kind && last !== undefined) {
      last.end = end;
      last.confidence = Math.min(last.confidence ?? 1, score);
      open = part === 'E' ? null : kind;
    } else {
      spans.push({ start, end, kind, confidence: score, isContextual: true, isGuess: true });
      open = part === 'S' || part === 'E' ? null : kind;
    }
  }
  return spans;
}
