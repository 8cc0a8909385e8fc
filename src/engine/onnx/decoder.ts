/**
 * The decoder, described once for training and decoding: embedding, then blocks of attention (rotary positions, keys shared
 * by groups of queries) and a gated feed-forward layer, each behind an RMSNorm and added to what came in. What one family has
 * and another has not is in config.ts. How the products are arranged and how a token looks back at earlier ones differs
 * between the two uses, and is handed in: model.ts computes with gradients over whole sequences, decode-graph.ts a few
 * tokens at a time with a cache.
 *
 * Follows Hugging Face transformers' modeling_llama.py, modeling_qwen2.py and modeling_qwen3.py in what it computes;
 * fixtures/ holds figures recorded from them.
 */
import { familyOf, type LinearLayer, type ModelConfig } from './config.ts';
import type { Graph, Tensor } from './graph.ts';
import { reshape, rmsNorm } from './ops.ts';

export type Arrangement = {
  readonly graph: Graph;
  /** A weight that is no linear layer's, by its name in the model. */
  readonly weight: (name: string) => Tensor;
  /** Size of a head, and the epsilon of a norm over one. */
  readonly head: { readonly size: number; readonly epsilon: number };
  /** The embeddings of this call's tokens, [tokens, hidden_size]. */
  readonly embed: () => Tensor;
  /** The outputs of linear layers of block `index` that read the same input. */
  readonly project: (x: Tensor, index: number, layers: readonly LinearLayer[]) => Tensor[];
  /** x + the output of a linear layer that reads y. */
  readonly addProjection: (x: Tensor, y: Tensor, index: number, layer: LinearLayer) => Tensor;
  /** Queries, keys and values by head (in any shape of that many numbers) → what each token sees, [tokens, heads · size]. */
  readonly attend: (q: Tensor, k: Tensor, v: Tensor, index: number) => Tensor;
  /** up · silu(gate) */
  readonly gated: (gate: Tensor, up: Tensor) => Tensor;
};

/** The last hidden state of every token, [tokens, hidden_size], after the final norm. */
export function decoder(config: ModelConfig, how: Arrangement): Tensor {
  const { graph: g, head } = how;
  const { headNorms } = familyOf(config);
  const norm = (x: Tensor, name: string) => rmsNorm(g, x, how.weight(name), config.rms_norm_eps);
  const perHead = (x: Tensor, name: string) =>
    headNorms ? rmsNorm(g, reshape(g, x, ['heads', head.size]), how.weight(name), head.epsilon) : x;
  let x = how.embed();
  for (let i = 0; i < config.num_hidden_layers; i++) {
    const block = `model.layers.${i}`;
    const input = norm(x, `${block}.input_layernorm.weight`);
    const [q, k, v] = how.project(input, i, ['q_proj', 'k_proj', 'v_proj']) as [Tensor, Tensor, Tensor];
    const queries = perHead(q, `${block}.self_attn.q_norm.weight`);
    const keys = perHead(k, `${block}.self_attn.k_norm.weight`);
    x = how.addProjection(x, how.attend(queries, keys, v, i), i, 'o_proj');
    const inner = norm(x, `${block}.post_attention_layernorm.weight`);
    const [gate, up] = how.project(inner, i, ['gate_proj', 'up_proj']) as [Tensor, Tensor];
    x = how.addProjection(x, how.gated(gate, up), i, 'down_proj');
  }
  return norm(x, 'model.norm.weight');
}

/** The tensor that turns the last hidden state into logits. */
export const headName = (config: ModelConfig) =>
  config.tie_word_embeddings ? 'model.embed_tokens.weight' : 'lm_head.weight';
