/**
 * The examples of a dataset by its id, for whoever trains: the record from the database, the rows from this home. Also the
 * dataset that a file is: never the rows of the file itself, because whether their users still agree stands in the database.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { ConfigError } from '../errors.ts';
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

/** The id of the dataset whose file this is, wherever it lies; null: it is no dataset's file. */
export async function datasetOfFile(store: Store, path: string): Promise<string | null> {
  if (!(await beginsWithRow(path))) return null;
  const digest = createHash('sha256');
  for await (const chunk of createReadStream(path)) digest.update(chunk as Buffer);
  const dataset = await readDataset(store, { hash: digest.digest('hex') });
  if (dataset === null)
    throw new ConfigError(
      `${path} is a dataset that this database does not know, so nobody can tell whether its users still agree. Train where it was made, or point DATABASE_URL at that database.`,
    );
  return dataset.id;
}

async function beginsWithRow(path: string): Promise<boolean> {
  const input = createReadStream(path);
  try {
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY }))
      return Array.isArray((JSON.parse(line) as { threads?: unknown } | null)?.threads);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  } finally {
    input.destroy();
  }
  return false;
}
