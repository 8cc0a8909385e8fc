import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { afterAll, expect, test } from 'vitest';
import { type ExportCounts, exportToFile } from './export-run.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-parquet-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const lines = Array.from({ length: 2500 }, (_, i) => ({
  messages: [
    { role: 'user', content: `Wo ist ${i}? 어디` },
    {
      ...{ role: 'assistant', content: '', reasoning_content: 'Look.' },
      tool_calls: [{ type: 'function', function: { name: 'get', arguments: { id: i, deep: { a: [1, null] } } } }],
    },
  ],
  ...(i % 2 === 0 && { tools: [{ type: 'function', function: { name: 'get', description: '', parameters: {} } }] }),
}));
async function* asLines(): AsyncGenerator<string, ExportCounts> {
  for (const line of lines) yield JSON.stringify(line);
  return { rows: lines.length, left: {}, thoughtsLost: 0 };
}

test('what is written as Parquet reads back the same, tools and reasoning kept, over several row groups', async () => {
  const out = join(folder, 'sft.parquet');
  expect(await exportToFile(asLines(), out, { format: 'trl-sft', force: false })).toMatchObject({ rows: 2500 });
  const rows = await parquetReadObjects({ file: await asyncBufferFromFile(out) });
  expect(rows).toHaveLength(2500);
  for (const i of [0, 999, 1000, 2499]) expect(rows[i]).toEqual({ tools: null, ...lines[i] });
  expect(statSync(out).mode & 0o077).toBe(0);
});
