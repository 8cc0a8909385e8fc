/**
 * What a run has come to. Only a finished run has a result: the newest checkpoint of one that was interrupted, paused or
 * stopped is a model that nobody asked for. Whoever wants a run's weights asks here and nowhere else.
 */
import { mkdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Engine } from '../engine/engine.ts';
import { writeMark } from '../engine/internal-mark.ts';
import { type Checkpoints, checkpointsInFolder } from './checkpoints.ts';
import { reload } from './reload.ts';
import { bestCheckpoint, markOf, type RunCheckpoint, type RunRecord, type RunStore } from './run-record.ts';

export type RunResult =
  | { readonly kind: 'finished'; readonly checkpoint: RunCheckpoint }
  /** Not begun, interrupted or failed: it goes on from its newest checkpoint. */
  | { readonly kind: 'open' }
  /** Somebody paused it; it goes on when somebody says so. */
  | { readonly kind: 'held'; readonly sentence: string }
  /** Somebody, a rule or a budget stopped it: it has no result. */
  | { readonly kind: 'stopped'; readonly sentence: string };

export function resultOf(run: RunRecord, checkpoints: readonly RunCheckpoint[]): RunResult {
  const at = `at step ${run.step} of ${run.steps}`;
  switch (run.status) {
    case 'finished': {
      const checkpoint = bestCheckpoint(checkpoints);
      if (checkpoint === null) throw new Error(`Run ${run.id} is finished and has no checkpoint.`);
      return { kind: 'finished', checkpoint };
    }
    case 'stopped':
      return { kind: 'stopped', sentence: `Run ${run.id} was stopped ${at}: ${run.reason}` };
    // A request that was made of a process which died before it saw it still stands.
    case 'running':
    case 'paused':
    case 'failed':
      if (run.request === 'stop') return { kind: 'stopped', sentence: `Run ${run.id} was stopped ${at} on request.` };
      if (run.request === 'pause') return { kind: 'held', sentence: `Run ${run.id} was paused ${at} on request.` };
      return { kind: 'open' };
    default:
      return run.status satisfies never;
  }
}

/**
 * The result's weights as a folder that can be served: all of them, an adapter merged into its base, without optimizer state,
 * whole or not there.
 */
export async function exportResult(
  run: string,
  folder: string,
  {
    store,
    engine,
    checkpoints,
  }: { readonly store: RunStore; readonly engine: Engine; readonly checkpoints?: Pick<Checkpoints, 'folder'> },
): Promise<void> {
  const record = await store.get(run);
  if (record === null) throw new Error(`There is no run ${run}; 'pawl runs list' shows those that exist.`);
  const result = resultOf(record, await store.checkpoints(run));
  if (result.kind !== 'finished')
    throw new Error(
      `Run ${run} is ${record.status} at step ${record.step} of ${record.steps}; only a finished run has a model to use. Go on with \`pawl runs resume ${run}\`.`,
    );
  const kept = checkpoints ?? checkpointsInFolder(record.folder);
  const { lora } = await reload(engine, run, await kept.folder(result.checkpoint.folder));
  const merged = `${run}.merged`;
  try {
    if (lora !== undefined) await engine.snapshot(run, merged);
    await saved(record, folder, (at) => engine.save(lora === undefined ? run : merged, at, { optimizer: false }));
    if (lora !== undefined) await engine.unload(merged);
  } finally {
    await engine.unload(run);
  }
}

/** Weights that have to carry a mark are not there before it is. */
async function saved(run: RunRecord, folder: string, save: (at: string) => Promise<void>): Promise<void> {
  if (!run.internal) return save(folder);
  const draft = join(dirname(folder), `.unmarked-${basename(folder)}`);
  await rm(draft, { recursive: true, force: true });
  await mkdir(dirname(folder), { recursive: true });
  await save(draft);
  await writeMark(draft, markOf(run));
  await rm(folder, { recursive: true, force: true });
  await rename(draft, folder);
}
