/**
 * What a run starts from and learns from, as references that its record holds, so that any machine can go on with it, and as
 * paths on the machine that does.
 */
import { isReference } from '../artifacts/artifact.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { keepCheckpoint } from '../engine/keep-checkpoint.ts';
import type { RunSettings } from './plan.ts';

type Portable = { readonly base: string; readonly settings: RunSettings };

/** Keeps what is a path. */
export async function keepMaterial<T extends Portable>(artifacts: Artifacts, run: T): Promise<T> {
  const { base } = run;
  return {
    ...run,
    base: isReference(base) ? base : await keepCheckpoint(artifacts, base),
    settings: await eachFile(run.settings, async (file) =>
      isReference(file) ? file : artifacts.add({ kind: 'examples' }, file),
    ),
  };
}

/** The same with paths on this machine, whatever it took to get them here. */
export const fetchMaterial = async <T extends Portable>(artifacts: Artifacts, run: T): Promise<T> => ({
  ...run,
  base: await artifacts.folder(run.base),
  settings: await eachFile(run.settings, (file) => artifacts.file(file)),
});

async function eachFile(settings: RunSettings, to: (file: string) => Promise<string>): Promise<RunSettings> {
  const { examples, pairs, replay } = settings;
  return {
    ...settings,
    ...(examples === undefined ? {} : { examples: await to(examples) }),
    ...(pairs === undefined ? {} : { pairs: await to(pairs) }),
    ...(replay?.file === undefined ? {} : { replay: { ...replay, file: await to(replay.file) } }),
  };
}
