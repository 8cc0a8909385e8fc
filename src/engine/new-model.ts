/**
 * Everything a new model's folder holds: config, random weights, tokenizer, chat template. Pure; `pawl model new` writes
 * what this returns. The end of a turn and the end of a text both end a generation.
 */
import { EngineError } from '../errors.ts';
import { defaultChatTemplate } from './chat.ts';
import type { CheckpointWrite } from './checkpoint.ts';
import { configOfSpec, type ModelSpec } from './model-spec.ts';
import { modelConfigJson, parameterShapes } from './onnx/config.ts';
import { randomWeights } from './onnx/weights.ts';
import type { Tensors } from './safetensors.ts';
import { createTokenizer } from './tokenizer.ts';
import { smallestVocabulary, tokenizerConfig, trainTokenizer } from './tokenizer-train.ts';

export function newModel(
  spec: ModelSpec,
  options: {
    readonly seed: number;
    /** What the tokenizer learns from; none gives one token per byte. */
    readonly texts: readonly string[];
    readonly chatTemplate?: string;
  },
): CheckpointWrite & { readonly weights: Tensors } {
  if (spec.vocabulary < smallestVocabulary) {
    throw new EngineError(
      `A vocabulary of ${spec.vocabulary} is too small: the bytes and control tokens alone are ${smallestVocabulary}.`,
    );
  }
  const shape = configOfSpec(spec);
  const json = trainTokenizer(options.texts, { vocabulary: spec.vocabulary });
  const { controls } = createTokenizer(json);
  const [turnEnd, textEnd] = [controls.get('<|im_end|>')!.id, controls.get('<|endoftext|>')!.id];
  const file = (value: unknown) => Buffer.from(`${JSON.stringify(value, null, 2)}\n`);
  const shapes = parameterShapes(shape);
  const weights: Tensors = new Map();
  for (const [name, data] of randomWeights(shape, options.seed)) weights.set(name, { shape: shapes.get(name)!, data });
  return {
    config: { ...modelConfigJson(shape), eos_token_id: turnEnd, pad_token_id: textEnd },
    weights,
    files: new Map<string, Uint8Array>([
      ['tokenizer.json', Buffer.from(JSON.stringify(json))],
      ['tokenizer_config.json', file(tokenizerConfig(shape.max_position_embeddings))],
      ['generation_config.json', file({ eos_token_id: [turnEnd, textEnd], pad_token_id: textEnd })],
      ['chat_template.jinja', Buffer.from(options.chatTemplate ?? defaultChatTemplate)],
    ]),
  };
}
