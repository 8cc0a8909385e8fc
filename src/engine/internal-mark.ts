/**
 * The mark of weights that learned from what is confidential: a file beside them, so that whoever has the folder has the mark, on
 * another machine and in another installation too. What carries it is trained and served inside its deployment and nowhere else.
 */
import { existsSync } from 'node:fs';
import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isReference } from '../artifacts/artifact.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';

const markFile = 'internal.json';

/** From which run and dataset it has it, for who finds the folder one day. */
export type InternalMark = { readonly agent: string; readonly run: string; readonly dataset: string | null };

export const writeMark = (folder: string, mark: InternalMark): Promise<void> =>
  writeFile(
    join(folder, markFile),
    `${JSON.stringify({ internal: true, ...mark, note: 'These weights learned from what is confidential; they stay inside the deployment they were trained in.' }, null, 2)}\n`,
  );

/** Of a folder of this machine. */
export const isMarked = (folder: string): boolean => existsSync(join(folder, markFile));

/** Where one has it, the other has it too. */
export async function copyMark(from: string, to: string): Promise<void> {
  if (isMarked(from)) await copyFile(join(from, markFile), join(to, markFile));
}

/** Of weights by their reference or their folder. */
export async function carriesMark(artifacts: Artifacts, weights: string): Promise<boolean> {
  if (!isReference(weights)) return isMarked(await artifacts.folder(weights));
  const { files, needs } = await artifacts.manifest(weights);
  if (files.some(({ path }) => path === markFile)) return true;
  // An adapter has what its base has.
  for (const base of needs) if (await carriesMark(artifacts, base)) return true;
  return false;
}
