/**
 * A checkpoint folder as an artifact. An adapter names the folder of its base: that becomes an artifact too, and the adapter
 * names it as its neighbour, so that the two are found together on whichever machine they are fetched to.
 */
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hashOf } from '../artifacts/artifact.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { readOneVersion } from './atomic-folder.ts';
import { inspectCheckpoint } from './checkpoint.ts';

export async function keepCheckpoint(artifacts: Artifacts, folder: string): Promise<string> {
  return readOneVersion(folder, async (dir) => {
    const { adapter } = await inspectCheckpoint(dir);
    if (adapter === undefined) return artifacts.add({ kind: 'model' }, dir);
    const base = await keepCheckpoint(artifacts, adapter.base);
    const draft = await artifacts.draft();
    try {
      await cp(dir, draft, { recursive: true, dereference: true });
      const file = join(draft, 'adapter_config.json');
      const config = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>;
      await writeFile(file, JSON.stringify({ ...config, base_model_name_or_path: join('..', hashOf(base)) }, null, 2));
      return await artifacts.add({ kind: 'model', needs: [base] }, draft, { move: true });
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  });
}
