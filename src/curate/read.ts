/** The examples of a dataset by its id, for whoever trains: the record from the database, the rows from this home. */
import { readDataset } from '../store/datasets.ts';
import type { Store } from '../store/postgres.ts';
import { consentedRows } from './consented.ts';
import { type CuratedExample, examplesOf } from './examples.ts';

export type DatasetReader = (id: string) => AsyncGenerator<CuratedExample>;

export const datasetReader = (store: Store, home: string): DatasetReader =>
  async function* (id) {
    const dataset = await readDataset(store, { id });
    if (dataset === null) throw new Error(`There is no dataset ${id}; \`pawl datasets list\` shows those that exist.`);
    for await (const row of consentedRows(store, home, dataset)) yield* examplesOf(row, dataset.seed);
  };
