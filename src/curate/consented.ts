/**
 * The rows of a dataset that may still be learned from. A dataset is never changed, but consent may have been withdrawn since
 * it was made; whoever trains reads it through here. Fails closed: a conversation that is no longer there is left out.
 */
import { readStandingsIn } from '../store/consents.ts';
import type { Store } from '../store/postgres.ts';
import type { Dataset } from './dataset.ts';
import { readRows } from './files.ts';
import { lapsed } from './gates.ts';
import type { Row } from './row.ts';

export async function* consentedRows(
  store: Store,
  home: string,
  dataset: Pick<Dataset, 'id' | 'hash' | 'settings'>,
): AsyncGenerator<Row> {
  const standings = await readStandingsIn(store, dataset.id);
  for await (const row of readRows(home, dataset))
    if (lapsed(standings.get(`${row.day} ${row.trajectory}`), dataset.settings.on) === null) yield row;
}
