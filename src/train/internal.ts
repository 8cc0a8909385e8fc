/**
 * Whether what a run makes has to stay inside: its dataset is internal, or the model that it starts from is. What is confidential
 * is not sent to an engine elsewhere that the settings do not call their own.
 */
import type { Artifacts } from '../artifacts/artifacts.ts';
import type { Engine } from '../engine/engine.ts';
import { carriesMark } from '../engine/internal-mark.ts';
import { ConflictError } from '../errors.ts';
import type { Store } from '../store/postgres.ts';
import { needDataset, presentDataset } from './begin.ts';
import type { RunSpec } from './plan.ts';

export async function markFor(
  { store, artifacts, engine }: { readonly store: Store; readonly artifacts: Artifacts; readonly engine: Engine },
  { base, settings: { dataset } }: Pick<RunSpec, 'base' | 'settings'>,
): Promise<boolean> {
  const learned = dataset === undefined ? null : await presentDataset(store, await needDataset(store, dataset));
  const internal = learned?.internal === true || (await carriesMark(artifacts, base));
  if (internal && !engine.traits.isInside) {
    const what = learned?.internal ? `Dataset ${learned.id}` : 'The model that this run starts from';
    throw new ConflictError(
      `${what} is internal: it holds what curate.confidential names, and the engine of the settings is a server elsewhere. Train with the embedded engine, or say \`inside: true\` in engine in pawl.config.ts if that server is part of your deployment.`,
    );
  }
  return internal;
}
