import { expect, test } from 'vitest';
import { paint } from '../terminal.ts';
import { diffLines } from './command.ts';
import type { Dataset } from './dataset.ts';
import { contentsOf, diffDatasets } from './diff.ts';
import type { Line } from './files.ts';
import { settings, settingsKept } from './settings.ts';

const dataset = (id: string, fields: Partial<Dataset> = {}): Dataset => ({
  id,
  agent: 'desk',
  version: 1,
  createdAt: 0,
  since: 0,
  until: 1000,
  spec: 's',
  settings: settingsKept(settings.parse({})),
  seed: 0,
  funnel: [{ gate: 'origin', entered: 3, passed: 2, left: {} }],
  pairs: { rows: 0, sources: {}, funnel: [] },
  taskTypes: {},
  rows: 2,
  internal: false,
  hash: '',
  artifact: null,
  key: '',
  gone: null,
  ...fields,
});
const row = (trajectory: string, taskType: string | null, score = 1): Line => ({
  kind: 'row',
  row: { trajectory, day: '2026-05-20', taskType, score, threads: [] },
});
const lines = async function* (...all: Line[]) {
  yield* all;
};

test('two datasets are told apart by conversation, task type, settings and gates', async () => {
  const first = dataset('desk-v1');
  const second = dataset('desk-v2', {
    settings: { ...first.settings, minScore: 0.8 },
    funnel: [
      { gate: 'origin', entered: 5, passed: 5, left: {} },
      { gate: 'size', entered: 5, passed: 3, left: {} },
    ],
  });
  const diff = diffDatasets(
    first,
    second,
    await contentsOf(lines(row('a', 'refund'), row('b', null), row('c', 'refund'))),
    await contentsOf(lines(row('b', null, 0.9), row('c', 'refund'), row('d', 'order'))),
  );
  expect(diff).toEqual({
    datasets: ['desk-v1', 'desk-v2'],
    rows: { onlyFirst: ['2026-05-20 a'], onlySecond: ['2026-05-20 d'], changed: ['2026-05-20 b'], same: 1 },
    pairs: { onlyFirst: 0, onlySecond: 0, same: 0 },
    taskTypes: {
      order: { onlyFirst: 0, onlySecond: 1, both: 0 },
      refund: { onlyFirst: 1, onlySecond: 0, both: 1 },
      unknown: { onlyFirst: 0, onlySecond: 0, both: 1 },
    },
    settings: { minScore: [0.7, 0.8] },
    funnel: [
      { gate: 'origin', entered: [3, 5], passed: [2, 5] },
      { gate: 'size', entered: [null, 5], passed: [null, 3] },
    ],
  });
  const text = diffLines(diff, { columns: 100, paint: paint(false) }).join('\n');
  expect(text).toMatch(/only in +1 +1 +2/);
  expect(text).toContain('Only in desk-v1: a');
  expect(text).toContain('minScore: 0.7 in desk-v1, 0.8 in desk-v2');
});
