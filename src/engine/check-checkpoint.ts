/**
 * Whether a folder is a checkpoint that the engine can load: a config of a model it knows, every tensor in the shape that
 * config needs, and a tokenizer where there is one. Reads headers, no weights.
 */
import { EngineError } from '../errors.ts';
import { type CheckpointSummary, inspectCheckpoint, readModelFiles } from './checkpoint.ts';
import { type ModelConfig, parameterShapes, parseModelConfig } from './onnx/config.ts';
import { isIdle } from './onnx/weights.ts';
import { type Tokenizer, tokenizerFromFiles } from './tokenizer.ts';

export type Checked = {
  readonly summary: CheckpointSummary;
  readonly config: ModelConfig;
  /** undefined: only token ids can be sampled. */
  readonly tokenizer: Tokenizer | undefined;
};

export async function checkCheckpoint(folder: string): Promise<Checked> {
  const summary = await inspectCheckpoint(folder);
  const config = parseModelConfig(summary.config);
  checkTensors(folder, config, summary.tensors);
  return { summary, config, tokenizer: tokenizerFromFiles(await readModelFiles(folder)) };
}

/** Throws an EngineError unless the weight files hold the tensors that the config needs, in their shapes, and no others. */
export function checkTensors(folder: string, config: ModelConfig, tensors: CheckpointSummary['tensors']): void {
  const shapes = parameterShapes(config);
  for (const [name, shape] of shapes) {
    const found = tensors.get(name);
    if (!found) throw new EngineError(`${folder} has no tensor ${name}; its config.json needs [${shape}].`);
    if (String(found) !== String(shape))
      throw new EngineError(`Tensor ${name} in ${folder} has the shape [${found}]; its config.json needs [${shape}].`);
  }
  for (const name of tensors.keys())
    if (!shapes.has(name) && !isIdle(config, name))
      throw new EngineError(`${folder} has a tensor ${name} that its config.json does not name.`);
}
