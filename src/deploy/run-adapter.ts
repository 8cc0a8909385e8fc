/**
 * The adapter that a training run made, in PEFT's format: from the checkpoint where it lies in it, as the embedded engine writes it, and
 * else fetched from the server that trained it.
 */
import { rm } from 'node:fs/promises';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { openEngine } from '../engine/open.ts';
import type { EngineSettings } from '../engine/settings.ts';
import { readReference } from '../engine/tinker/reference.ts';
import { ConflictError } from '../errors.ts';
import { runPlaces } from '../train/checkpoints.ts';
import { exportResult, resultOf } from '../train/result.ts';
import type { RunRecord, RunStore } from '../train/run-record.ts';
import { isAdapter, keepAdapter } from './adapter.ts';

type Parts = {
  readonly runs: RunStore;
  readonly artifacts: Artifacts;
  readonly engine: EngineSettings;
  readonly say: (text: string) => void;
};

/** Kept; its reference. */
export async function adapterOfRun(run: RunRecord, { runs, artifacts, engine, say }: Parts): Promise<string> {
  const { id, status, step, steps } = run;
  const result = resultOf(run, await runs.checkpoints(id));
  if (result.kind !== 'finished')
    throw new ConflictError(
      `Run ${id} is ${status} at step ${step} of ${steps}; only a finished run has an adapter to serve. Go on with \`pawl runs resume ${id}\`.`,
    );
  const folder = await artifacts.folder(result.checkpoint.folder);
  if (await isAdapter(folder)) return keepAdapter(artifacts, folder);
  const reference = await readReference(folder);
  if (reference === null)
    throw new ConflictError(
      `Run ${id} trained all weights of its model, so there is no adapter of it. Serve it with Pawl’s own engine (--checkpoint), or train with \`--lora RANK\`.`,
    );
  if (engine.kind !== 'tinker')
    throw new ConflictError(
      `The adapter of run ${id} lies at the server that trained it, ${reference.url}, and \`engine\` in pawl.config.ts names none. Set engine: { kind: 'tinker', url: … } to fetch it.`,
    );
  say(`Fetching the adapter of run ${id} from ${reference.url} …`);
  const trainer = await openEngine(engine);
  const draft = await artifacts.draft();
  try {
    await exportResult(id, draft, { store: runs, engine: trainer, ...runPlaces(artifacts, run) });
    return await keepAdapter(artifacts, draft);
  } finally {
    await trainer.close();
    await rm(draft, { recursive: true, force: true });
  }
}
