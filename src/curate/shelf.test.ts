import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { dropStaleDatasets } from './files.ts';
import { openShelf } from './shelf.ts';

const home = mkdtempSync(join(tmpdir(), 'pawl-shelf-'));
const folder = join(home, 'datasets');
afterAll(() => rmSync(home, { recursive: true, force: true }));

test('words come back wherever they lie, while more are added, from two pages in memory', async () => {
  const shelf = openShelf(folder, 2);
  const records = Array.from({ length: 3000 }, (_, i) => Uint32Array.from({ length: i % 7 }, (_, k) => i * 1000 + k));
  const starts: number[] = [];
  for (const [i, record] of records.entries()) {
    starts.push(shelf.add(record));
    const earlier = (i * 7919) % (i + 1);
    expect(shelf.read(starts[earlier]!, new Uint32Array(records[earlier]!.length))).toEqual(records[earlier]);
  }
  expect(shelf.length).toBe(records.reduce((sum, { length }) => sum + length, 0));
  for (const [i, start] of starts.entries()) if (records[i]!.length > 0) expect(shelf.get(start)).toBe(i * 1000);
  expect(readdirSync(folder)).toHaveLength(1);
  await dropStaleDatasets(home); // whose it is lives
  expect(readdirSync(folder)).toHaveLength(1);
  shelf.drop();
  expect(readdirSync(folder)).toEqual([]);
});

test('a number is written over and the newest are forgotten, wherever their pages are', () => {
  const shelf = openShelf(folder, 2);
  for (let i = 0; i < 10_000; i++) shelf.push(i);
  for (let i = 0; i < 10_000; i += 7) shelf.set(i, 3 * i);
  shelf.cut(5000);
  for (let i = 5000; i < 9000; i++) shelf.push(i + 1);
  expect(shelf.length).toBe(9000);
  for (let i = 0; i < 9000; i++) expect(shelf.get(i)).toBe(i >= 5000 ? i + 1 : i % 7 === 0 ? 3 * i : i);
  shelf.drop();
  expect(readdirSync(folder)).toEqual([]);
});

test('what fits into memory makes no file', () => {
  const shelf = openShelf(join(home, 'none'));
  shelf.add(new Uint32Array(100_000).fill(7));
  expect(shelf.get(99_999)).toBe(7);
  expect(readdirSync(home)).not.toContain('none');
  shelf.drop();
});
