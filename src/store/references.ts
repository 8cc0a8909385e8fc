/** Which artifacts the database refers to, and by what: whatever is not among them may be cleared away (artifacts/prune.ts). */
import { type Store, storeError } from './postgres.ts';

/**
 * Everywhere that a reference may stand. A column is searched as text, so that one which stands in a run's settings or in
 * what a stage of the loop left for the next is found too.
 */
const places = [
  ['datasets', `'dataset ' || id`, 'artifact'],
  ['releases', `'release ' || name || ' of ' || agent`, 'checkpoint'],
  ['runs', `'run ' || id`, `base || settings::text`],
  ['run_checkpoints', `'run ' || run`, 'folder'],
  ['reports', `id`, `body -> 'suite' ->> 'artifact'`],
  ['reward_models', `'reward model ' || name || ' ' || version || ' of ' || agent`, 'artifact'],
  ['loop_turns', `'turn ' || number || ' of ' || agent`, 'state::text'],
] as const;

/** Reference → what refers to it. */
export async function readReferences(store: Store): Promise<ReadonlyMap<string, readonly string[]>> {
  const all = places.map(
    ([table, by, text]) =>
      `select distinct ${by} as by, found[1] as reference
       from pawl.${table}, regexp_matches(${text}, 'artifact:[0-9a-f]{64}', 'g') as found`,
  );
  const { rows } = await store.pool
    .query<{ by: string; reference: string }>(`${all.join(' union all ')} order by by`)
    .catch((error) => {
      throw storeError(error, 'Reading what refers to artifacts');
    });
  const found = new Map<string, string[]>();
  for (const { by, reference } of rows) found.set(reference, [...(found.get(reference) ?? []), by]);
  return found;
}
