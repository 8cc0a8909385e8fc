/**
 * Where a run's checkpoints are. Each is saved into a draft, kept, and from then on known by what `keep` returned: a
 * reference, which any machine resolves, or a path in the run's own folder where there is no artifact store.
 */
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { isReference } from '../artifacts/artifact.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import type { RunRecord } from './run-record.ts';

export type Checkpoints = {
  /** Path to save the checkpoint of this name into. */
  draft(name: string): Promise<string>;
  keep(draft: string, name: string): Promise<string>;
  isThere(kept: string): Promise<boolean>;
  /** On this machine, every byte checked. */
  folder(kept: string): Promise<string>;
  drop(kept: string): Promise<void>;
};

const removeFolder = (folder: string): Promise<void> => rm(folder, { recursive: true, force: true });

export const checkpointsInFolder = (folder: string): Checkpoints => ({
  draft: async (name) => join(folder, name),
  keep: async (draft) => draft,
  isThere: async (kept) => existsSync(kept),
  folder: async (kept) => kept,
  drop: removeFolder,
});

export const checkpointsAsArtifacts = (
  artifacts: Artifacts,
  { id, base, settings }: Pick<RunRecord, 'id' | 'base' | 'settings'>,
): Checkpoints => ({
  draft: () => artifacts.draft(),
  // Of this run and no other, even where another has the same bytes: it is dropped when the run is done with it.
  keep: (draft, name) =>
    artifacts.add(
      {
        kind: 'checkpoint',
        of: `${id} ${name}`,
        needs: settings.lora !== undefined && isReference(base) ? [base] : [],
      },
      draft,
      { move: true },
    ),
  isThere: async (kept) => (isReference(kept) ? artifacts.has(kept) : existsSync(kept)),
  folder: (kept) => artifacts.folder(kept),
  drop: (kept) => (isReference(kept) ? artifacts.remove(kept) : removeFolder(kept)),
});

/** What is a run's own on the machine that trains it. */
export const runPlaces = (artifacts: Artifacts, run: Pick<RunRecord, 'id' | 'base' | 'settings'>) => ({
  folder: runFolder(artifacts, run.id),
  checkpoints: checkpointsAsArtifacts(artifacts, run),
});

export const runFolder = ({ home }: Pick<Artifacts, 'home'>, id: string): string => join(home, 'runs', id);

/** Folder of a finished run's model, to be looked at; what is served is its artifact. */
export const modelFolder = (home: string, run: string): string => join(resolve(home), 'models', run);
