/**
 * What this side must know of the model that the server holds: its size, its context, how its text ends. The server speaks tokens and
 * says none of it, so it is read from a folder of the model here: config.json and the tokenizer's files; weights are not needed.
 */
import { z } from 'zod';
import { EngineError } from '../../errors.ts';
import { readModelConfig, readModelFiles } from '../checkpoint.ts';
import { tokenizerFromFiles } from '../tokenizer.ts';
import type { Ends } from './sampling.ts';

const size = z.int().positive().max(100_000_000);

const schema = z.object({
  hidden_size: size,
  intermediate_size: size,
  num_hidden_layers: size,
  num_attention_heads: size,
  num_key_value_heads: size.optional(),
  head_dim: size.nullish(),
  vocab_size: size,
  max_position_embeddings: size,
  tie_word_embeddings: z.boolean().default(false),
  eos_token_id: z.union([z.int().nonnegative(), z.array(z.int().nonnegative()).max(64)]).nullish(),
});

export type BaseModel = {
  readonly bounds: { readonly vocab_size: number; readonly max_position_embeddings: number };
  readonly parameters: number;
  /** Of an adapter of this rank on all of attention and MLP. */
  readonly adapterParameters: (rank: number) => number;
  readonly ends: Ends;
};

export async function readBaseModel(folder: string): Promise<BaseModel> {
  const parsed = schema.safeParse(await readModelConfig(folder));
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
    throw new EngineError(`${folder}/config.json does not say what the model is: ${problems.join('; ')}.`);
  }
  const c = parsed.data;
  const tokenizer = tokenizerFromFiles(await readModelFiles(folder));
  const head = c.head_dim ?? c.hidden_size / c.num_attention_heads;
  const q = c.num_attention_heads * head;
  const kv = (c.num_key_value_heads ?? c.num_attention_heads) * head;
  const [d, f, layers] = [c.hidden_size, c.intermediate_size, c.num_hidden_layers];
  /** [out, in] of every linear layer of a block: q, k, v, o, gate, up, down. */
  const linear = [
    [q, d],
    [kv, d],
    [kv, d],
    [d, q],
    [f, d],
    [f, d],
    [d, f],
  ] as const;
  const block = linear.reduce((sum, [out, into]) => sum + out * into, 0) + 2 * d;
  const eos = c.eos_token_id ?? [];
  return {
    bounds: { vocab_size: c.vocab_size, max_position_embeddings: c.max_position_embeddings },
    parameters: layers * block + (c.tie_word_embeddings ? 1 : 2) * c.vocab_size * d + d,
    adapterParameters: (rank) => layers * linear.reduce((sum, [out, into]) => sum + rank * (out + into), 0),
    ends: {
      stopTokens: typeof eos === 'number' ? [eos] : eos,
      textStream: tokenizer && (() => tokenizer.stream({ skipSpecial: false })),
    },
  };
}
