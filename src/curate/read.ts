/**
 * The examples and pairs of a dataset by its id, for whoever trains: the record from the database, the rows from its artifact. Also the
 * dataset that a file is: never the rows of the file itself, because whether their users still agree stands in the database.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { ConfigError } from '../errors.ts';
import { readDataset } from '../store/datasets.ts';
import type { Store } from '../store/postgres.ts';
import { consentedLines } from './consented.ts';
import { type CuratedExample, type CuratedPair, examplesOf, pairOf } from './examples.ts';

export type DatasetReader = {
  examples(id: string): AsyncGenerator<CuratedExample>;
  pairs(id: string): AsyncGenerator<CuratedPair>;
};

export function datasetReader(store: Store, artifacts: Artifacts): DatasetReader {
  /** Where rows had to go, what took its place: a run that is resumed goes on with what may still be learned from. */
  async function* linesOf(id: string) {
    let dataset = await readDataset(store, { id });
    for (let next = dataset?.gone?.replacedBy; next; next = dataset?.gone?.replacedBy)
      dataset = await readDataset(store, { id: next });
    if (dataset === null)
      throw new ConfigError(`There is no dataset ${id}; \`pawl datasets list\` shows those that exist.`);
    for await (const line of consentedLines(store, artifacts, dataset)) yield { line, seed: dataset.seed };
  }
  return {
    async *examples(id) {
      for await (const { line, seed } of linesOf(id)) if (line.kind === 'row') yield* examplesOf(line.row, seed);
    },
    async *pairs(id) {
      for await (const { line, seed } of linesOf(id)) if (line.kind === 'pair') yield pairOf(line.pair, seed);
    },
  };
}

/** The id of the dataset whose file this is, wherever it lies; null: it is no dataset's file. */
export async function datasetOfFile(store: Store, path: string): Promise<string | null> {
  if (!(await beginsWithLine(path))) return null;
  const digest = createHash('sha256');
  for await (const chunk of createReadStream(path)) digest.update(chunk as Buffer);
  const dataset = await readDataset(store, { hash: digest.digest('hex') });
  if (dataset === null)
    throw new ConfigError(
      `${path} is a dataset that this database does not know, so nobody can tell whether its users still agree. Train where it was made, or point DATABASE_URL at that database.`,
    );
  return dataset.id;
}

const isDatasetLine = (line: { threads?: unknown; pair?: unknown } | null): boolean =>
  Array.isArray(line?.threads) || typeof line?.pair === 'object';

async function beginsWithLine(path: string): Promise<boolean> {
  const input = createReadStream(path);
  try {
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY }))
      return isDatasetLine(JSON.parse(line));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  } finally {
    input.destroy();
  }
  return false;
}
