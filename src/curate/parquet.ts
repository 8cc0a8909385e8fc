/**
 * Lines of an export as a Parquet file, a row group at a time, so that memory holds a thousand lines and not the dataset. A column per
 * key of the format, each as JSON text (Parquet's type JSON): arguments of tools and schemas have no common shape, and a column of
 * structs would have to invent one. A key that a line does not have is null.
 */
import { fileWriter, ParquetWriter } from 'hyparquet-writer';
import type { ExportFormat } from './export.ts';

const columns: Readonly<Record<ExportFormat, readonly string[]>> = {
  'trl-sft': ['messages', 'tools'],
  'trl-preference': ['prompt', 'chosen', 'rejected', 'tools'],
  'trl-prompts': ['prompt', 'tools'],
  'openai-chat': ['messages', 'tools'],
};

const rowsInGroup = 1000;

export type Sink = { add(line: string): Promise<void>; end(): Promise<void> };

export function parquetSink(path: string, format: ExportFormat): Sink {
  const names = columns[format];
  const writer = new ParquetWriter({
    writer: fileWriter(path),
    schema: [
      { name: 'root', num_children: names.length },
      ...names.map((name) => ({
        name,
        ...({ type: 'BYTE_ARRAY', converted_type: 'JSON', repetition_type: 'OPTIONAL' } as const),
      })),
    ],
    kvMetadata: [{ key: 'pawl.format', value: format }],
    createdBy: 'pawl',
  });
  let waiting: Readonly<Record<string, unknown>>[] = [];
  const flush = async () => {
    if (waiting.length === 0) return;
    const columnData = names.map((name) => ({ name, data: waiting.map((line) => line[name] ?? null) }));
    await writer.write({ columnData, rowGroupSize: rowsInGroup });
    waiting = [];
  };
  return {
    async add(line) {
      waiting.push(JSON.parse(line));
      if (waiting.length === rowsInGroup) await flush();
    },
    async end() {
      await flush();
      await writer.finish();
    },
  };
}
