/** The adapter of a run, from either kind of trainer. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import type { Datum, Engine } from '../engine/engine.ts';
import { writeTinyCheckpoint } from '../engine/fixtures/tiny-checkpoint.ts';
import { createOnnxEngine } from '../engine/onnx/engine.ts';
import { openEngine } from '../engine/open.ts';
import { openSafetensors } from '../engine/safetensors.ts';
import type { EngineSettings } from '../engine/settings.ts';
import { type StandIn, startStandIn } from '../engine/tinker/fixtures/stand-in.ts';
import { memoryRunStore, type RunRecord, type RunStatus } from '../train/run-record.ts';
import { adapterOfRun } from './run-adapter.ts';

let root = '';
let base = '';
let server: StandIn;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'pawl-run-adapter-'));
  base = join(root, 'base');
  await writeTinyCheckpoint(base);
  server = await startStandIn({ folder: base, dialect: 'skyrl' });
});
afterAll(async () => {
  await server?.close();
  await rm(root, { recursive: true, force: true });
});

const data: Datum[] = [{ tokens: [1, 2, 3, 4], targets: [2, 3, 4, 5], weights: [0, 1, 1, 1] }];

/** A run that took one step, saved as training saves it. */
async function runOf(id: string, engine: Engine, lora: object, status: RunStatus = 'finished') {
  const folder = join(root, id);
  await engine.load(id, base, lora);
  await engine.forwardBackward(id, data, { kind: 'cross_entropy' });
  await engine.optimStep(id, { learningRate: 0.1 });
  await engine.save(id, folder);
  await engine.close();
  const runs = memoryRunStore();
  const run = { id, agent: 'desk', base, folder: root, settings: {}, status, step: 1, steps: 2, request: null };
  await runs.create(run as unknown as RunRecord);
  await runs.saveCheckpoint({ run: id, step: 1, kind: 'step', stage: 0, folder, state: null, validation: null });
  return { run: (await runs.get(id))!, runs };
}

const fetchOf = async ({ run, runs }: Awaited<ReturnType<typeof runOf>>, engine: EngineSettings = {}) => {
  const artifacts = openArtifacts({ home: root });
  const said: string[] = [];
  const reference = await adapterOfRun(run, { runs, artifacts, engine, say: (text) => said.push(text) });
  const folder = await artifacts.folder(reference);
  const file = await openSafetensors(join(folder, 'adapter_model.safetensors'));
  await file.close();
  return { names: (await readdir(folder)).sort(), tensors: [...file.tensors.keys()], said };
};
const inPeft = {
  names: ['adapter_config.json', 'adapter_model.safetensors'],
  tensors: expect.arrayContaining([
    'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight',
    'base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight',
  ]),
};

it('lies in the checkpoint of the embedded engine', async () => {
  const made = await runOf('own', createOnnxEngine({}), { lora: { rank: 2, alpha: 4 } });
  expect(await fetchOf(made)).toMatchObject({ ...inPeft, said: [] });
});

it('is fetched from the server that trained it', async () => {
  const settings = { kind: 'tinker', url: server.url, baseModel: 'base', folder: base, rank: 4 } as const;
  const made = await runOf('remote', await openEngine(settings), { lora: { rank: 4, alpha: 8 } });
  expect(await fetchOf(made, settings)).toMatchObject({
    ...inPeft,
    said: [expect.stringMatching(/^Fetching the adapter of run remote from http/)],
  });
  await expect(fetchOf(made)).rejects.toThrow(
    /lies at the server that trained it, http.*Set engine: \{ kind: 'tinker'/,
  );
});

it('is not there where all weights were trained, or the run has not finished', async () => {
  await expect(fetchOf(await runOf('whole', createOnnxEngine({}), {}))).rejects.toThrow(/trained all weights/);
  const half = await runOf('half', createOnnxEngine({}), { lora: { rank: 2, alpha: 4 } }, 'failed');
  await expect(fetchOf(half)).rejects.toThrow(/Run half is failed at step 1 of 2; only a finished run/);
});
