import { afterAll, beforeAll, expect, test } from 'vitest';
import { Graph } from './graph.ts';
import { runInPlace, runsInPlace } from './in-place.ts';
import { createSession, float32, int32, type Values } from './session.ts';

let session: Awaited<ReturnType<typeof createSession>>;
beforeAll(async () => {
  // y = table[ids] + 1 and twice = 2 · table[ids]
  const g = new Graph();
  runsInPlace(g);
  const table = g.input('table', 'float32', [4]);
  const ids = g.input('ids', 'int32', ['n']);
  const rows = g.node('Gather', [table, ids], 'float32', ['n']);
  g.output('y', g.node('Add', [rows, g.scalar(1)], 'float32', ['n']));
  g.output('twice', g.node('Add', [rows, rows], 'float32', ['n']));
  session = await createSession(g, 'test', { threads: 1 });
});
afterAll(() => session.release());

const table = float32(Float32Array.of(10, 20, 30, 40), [4]);
const inputs = (...ids: number[]): Values => ({ table, ids: int32(Int32Array.from(ids), [ids.length]) });

test('every output asked for is written where the caller wants it, and no other', async () => {
  const [y, twice] = [new Float32Array(2), new Float32Array(2)];
  await runInPlace(session, inputs(3, 0), { y: float32(y, [2]), twice: float32(twice, [2]) });
  expect([...y, ...twice]).toEqual([41, 11, 80, 20]);
  await runInPlace(session, inputs(1, 1), { y: float32(y, [2]) });
  expect([...y, ...twice]).toEqual([21, 21, 80, 20]);
});

test('a run that fails is an error: an index out of range, an output of the wrong size, an input left out', async () => {
  const outputs = () => ({ y: float32(new Float32Array(1), [1]) });
  await expect(runInPlace(session, inputs(9), outputs())).rejects.toThrow('out of data bounds');
  await expect(runInPlace(session, inputs(1, 2), outputs())).rejects.toThrow('has shape {1}');
  await expect(runInPlace(session, { table }, outputs())).rejects.toThrow("'ids' is missing");
});

test('the binding stops before it copies outputs; if a new version does not, see whether it still copies', async () => {
  const run = session.run(inputs(1), { y: float32(new Float32Array(1), [1]), 'in place': null });
  await expect(run).rejects.toThrow('Non tensor type is temporarily not supported');
});
