/** A name in the engine gets the weights of a folder, whatever it held before: a run that goes on meets its own leavings. */
import type { Engine } from '../engine/engine.ts';

export async function reload(engine: Engine, model: string, folder: string): Promise<void> {
  if ((await engine.models()).some(({ name }) => name === model)) await engine.unload(model);
  await engine.load(model, folder);
}
