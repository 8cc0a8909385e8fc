/** A name in the engine gets the weights of a folder, whatever it held before: a run that goes on meets its own leavings. */
import type { Engine, LoraSpec, ModelInfo } from '../engine/engine.ts';

export async function reload(engine: Engine, model: string, folder: string, lora?: LoraSpec): Promise<ModelInfo> {
  if ((await engine.models()).some(({ name }) => name === model)) await engine.unload(model);
  return engine.load(model, folder, lora === undefined ? {} : { lora });
}
