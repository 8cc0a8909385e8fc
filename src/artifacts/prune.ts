/**
 * Clears away what nothing refers to: what was kept by somebody who was killed before it was written into the database, what
 * became of no release, and files of uploads that never ended. Only what is a day old: what is younger may be on its way.
 */
import { ConflictError } from '../errors.ts';
import type { Store } from '../store/postgres.ts';
import { readReferences } from '../store/references.ts';
import type { Artifacts, Listed } from './artifacts.ts';
import { referredIn } from './inventory.ts';

const dayMs = 24 * 60 * 60 * 1000;

export type Pruned = {
  readonly kept: number;
  /** Referred to by nothing, but too young. */
  readonly young: number;
  readonly removed: readonly Listed[];
  /** Files that belong to no artifact. */
  readonly files: number;
};

/** Pure: what of the list goes. */
export function toPrune(
  all: readonly Listed[],
  isReferred: (reference: string) => boolean,
  now: number,
): { readonly old: readonly Listed[]; readonly young: number; readonly kept: number } {
  const unreferred = all.filter(({ reference }) => !isReferred(reference));
  const old = unreferred.filter(({ at }) => now - at >= dayMs);
  return { old, young: unreferred.length - old.length, kept: all.length - unreferred.length };
}

export async function pruneArtifacts(
  artifacts: Artifacts,
  store: Store,
  {
    now,
    dryRun,
    force = false,
    onRemoved,
  }: {
    readonly now: number;
    readonly dryRun: boolean;
    /** Also where the database refers to nothing of what is there. */
    readonly force?: boolean;
    readonly onRemoved?: (count: number) => void;
  },
): Promise<Pruned> {
  const all: Listed[] = [];
  for await (const one of artifacts.list()) all.push(one);
  const references = await referredIn(artifacts, store);
  const { old, young, kept } = toPrune(all, (reference) => references.has(reference), now);
  if (old.length > 0 && kept === 0 && !force)
    throw new ConflictError(
      `Nothing in this database refers to any of the ${all.length} artifacts in ${artifacts.where}, so they are probably another's: is DATABASE_URL, or \`artifacts\`, the right one? If they are to go, say --force.`,
    );
  const leftovers: string[] = [];
  for await (const key of artifacts.leftovers(now - dayMs)) leftovers.push(key);
  let done = 0;
  if (!dryRun) {
    for (const { reference } of old) {
      // Somebody may have begun to use it since the look above.
      if ((await readReferences(store)).has(reference)) continue;
      await artifacts.remove(reference);
      onRemoved?.(++done);
    }
    for (const key of leftovers) await artifacts.removeLeftover(key);
    await artifacts.tidy();
  }
  return { kept, young, removed: old, files: leftovers.length };
}
