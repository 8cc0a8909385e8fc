/** What is in the artifact store, with what refers to it in the database. */
import { ArtifactError, NotFoundError } from '../errors.ts';
import type { Store } from '../store/postgres.ts';
import { readReferences } from '../store/references.ts';
import { isReference, type Manifest, sizeOf } from './artifact.ts';
import type { Artifacts, Listed } from './artifacts.ts';

export type Entry = Listed & {
  /** null: its manifest cannot be read, or is not what was kept. */
  readonly manifest: Manifest | null;
  readonly bytes: number;
  /** What refers to it; nothing: `pawl artifacts prune` removes it once it is a day old. */
  readonly referredBy: readonly string[];
};

/** Newest first. Manifests are read only of those that are returned. */
export async function listArtifacts(artifacts: Artifacts, store: Store, limit: number): Promise<Entry[]> {
  const all: Listed[] = [];
  for await (const one of artifacts.list()) all.push(one);
  all.sort((a, b) => b.at - a.at || (a.reference < b.reference ? -1 : 1));
  const references = await referredIn(artifacts, store);
  const entries: Entry[] = [];
  for (const one of all.slice(0, limit)) entries.push(await entryOf(artifacts, one, references));
  return entries;
}

/** By its reference, or by as much of its hash as tells it from the others. */
export async function findArtifact(artifacts: Artifacts, store: Store, given: string): Promise<Entry> {
  const begin = given.startsWith('artifact:') ? given : `artifact:${given}`;
  const found: Listed[] = [];
  for await (const one of artifacts.list()) if (one.reference.startsWith(begin)) found.push(one);
  const [first, second] = found;
  if (first === undefined)
    throw new NotFoundError(`There is no ${begin} in ${artifacts.where}; \`pawl artifacts list\` shows what is there.`);
  if (second !== undefined)
    throw new NotFoundError(
      `${begin} could be ${found.length} artifacts, such as ${first.reference} and ${second.reference}; give more of it.`,
    );
  return entryOf(artifacts, first, await referredIn(artifacts, store));
}

async function entryOf(
  artifacts: Artifacts,
  one: Listed,
  references: ReadonlyMap<string, readonly string[]>,
): Promise<Entry> {
  const manifest = await artifacts.manifest(one.reference).catch((error: unknown) => {
    if (error instanceof ArtifactError && !error.retryable) return null;
    throw error;
  });
  const bytes = manifest === null ? 0 : sizeOf(manifest);
  return { ...one, manifest, bytes, referredBy: references.get(one.reference) ?? [] };
}

/** With what the referred ones need themselves, such as the base of an adapter. */
export async function referredIn(artifacts: Artifacts, store: Store): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = new Map<string, readonly string[]>(await readReferences(store));
  const open = [...found.keys()].filter(isReference);
  for (let reference = open.pop(); reference !== undefined; reference = open.pop()) {
    const manifest = await artifacts.manifest(reference).catch((error: unknown) => {
      // What is gone or broken needs nothing any more; a store that is away must not look like that.
      if (error instanceof ArtifactError && !error.retryable) return null;
      throw error;
    });
    for (const need of manifest?.needs ?? []) {
      if (!found.has(need)) open.push(need);
      found.set(need, [...(found.get(need) ?? []), reference]);
    }
  }
  return found;
}
