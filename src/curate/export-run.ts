/** Exports a dataset: reads what may still be learned from, writes the lines, and counts what was left out and why. */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { audit } from '../audit.ts';
import { ConfigError, ConflictError } from '../errors.ts';
import type { Store } from '../store/postgres.ts';
import { consentedLines } from './consented.ts';
import type { Dataset } from './dataset.ts';
import { examplesOf, pairOf } from './examples.ts';
import { type ExportFormat, exported } from './export.ts';
import type { Sink } from './parquet.ts';

export type ExportCounts = {
  readonly rows: number;
  /** Reason → how many conversations, threads or pairs. */
  readonly left: Readonly<Record<string, number>>;
  /** Answers whose reasoning the format has no key for. */
  readonly thoughtsLost: number;
};

/** What is confidential leaves only if somebody says that it does not leave the deployment. */
export function refuseInternal({ id, internal }: Pick<Dataset, 'id' | 'internal'>, staysInside = false): void {
  if (internal && !staysInside)
    throw new ConflictError(
      `Dataset ${id} is internal: it holds what curate.confidential names. If the file stays inside your deployment, say --internal (internal=true by HTTP).`,
    );
}

/** Every line of the format, and at the end what was counted. That it leaves the house is in the audit log before the first line is. */
export async function* exportLines(
  store: Store,
  artifacts: Artifacts,
  dataset: Dataset,
  { format, by }: { readonly format: ExportFormat; readonly by: string },
): AsyncGenerator<string, ExportCounts> {
  const { id, agent, hash, internal } = dataset;
  const of = { agent, actor: by, event: 'dataset-exported', subject: id };
  await audit(store.db, { ...of, details: { format, hash, internal }, at: Date.now() });
  const left: Record<string, number> = Object.create(null);
  const leave = (reason: string, count = 1) => {
    if (count > 0) left[reason] = (left[reason] ?? 0) + count;
  };
  const prompts = new Set<string>();
  const kinds = { row: format !== 'trl-preference', pair: format === 'trl-preference' || format === 'trl-prompts' };
  let expected = (kinds.row ? dataset.rows : 0) + (kinds.pair ? dataset.pairs.rows : 0);
  let rows = 0;
  let thoughtsLost = 0;
  for await (const found of consentedLines(store, artifacts, dataset)) {
    if (!kinds[found.kind]) continue;
    expected--;
    const items =
      found.kind === 'row'
        ? examplesOf(found.row, dataset.seed).map((example) => ({ example }))
        : [{ pair: pairOf(found.pair, dataset.seed) }];
    for (const item of items) {
      const made = exported(format, item);
      if (made === null) continue;
      if (made.kind === 'left') {
        leave(made.reason);
        continue;
      }
      const line = JSON.stringify(made.line);
      if (format === 'trl-prompts') {
        const asked = createHash('sha256').update(line).digest('base64');
        if (prompts.has(asked)) {
          leave('a prompt that is there already');
          continue;
        }
        prompts.add(asked);
      }
      rows++;
      thoughtsLost += made.thoughtsLost;
      yield line;
    }
  }
  leave('consent withdrawn since, or no longer stored', expected);
  return { rows, left: { ...left }, thoughtsLost };
}

const writtenAtOnce = 64 * 1024; // characters

function jsonlSink(file: FileHandle): Sink {
  let waiting = '';
  const flush = async () => {
    await file.appendFile(waiting);
    waiting = '';
  };
  return {
    async add(line) {
      waiting += `${line}\n`;
      if (waiting.length >= writtenAtOnce) await flush();
    },
    end: flush,
  };
}

/** Into a file that is there whole or not at all: Parquet where its name ends so, else a line each. */
export async function exportToFile(
  lines: AsyncGenerator<string, ExportCounts>,
  out: string,
  {
    format,
    force,
    signal,
    onRow,
  }: {
    readonly format: ExportFormat;
    readonly force: boolean;
    readonly signal?: AbortSignal;
    readonly onRow?: (rows: number) => void;
  },
): Promise<ExportCounts> {
  const path = resolve(out);
  if (!existsSync(dirname(path)))
    throw new ConfigError(`There is no folder ${dirname(path)} to write ${out} into; make it first.`);
  if (!force && existsSync(path))
    throw new ConfigError(`${out} exists already. Choose another name, or write over it with --force.`);
  const aside = join(dirname(path), `.${basename(path)}.${randomBytes(4).toString('hex')}`);
  const file = await open(aside, 'wx', 0o600);
  try {
    const sink = path.endsWith('.parquet')
      ? (await import('./parquet.ts')).parquetSink(aside, format)
      : jsonlSink(file);
    for (let rows = 0; ; ) {
      signal?.throwIfAborted();
      const next = await lines.next();
      if (!next.done) {
        await sink.add(next.value);
        onRow?.(++rows);
        continue;
      }
      await sink.end();
      await file.sync();
      await file.close();
      await rename(aside, path);
      return next.value;
    }
  } catch (error) {
    await file.close().catch(() => {}); // it may be closed already
    await rm(aside, { force: true });
    throw error;
  }
}
