import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { writeTinyCheckpoint } from './fixtures/tiny-checkpoint.ts';
import { keepCheckpoint } from './keep-checkpoint.ts';
import { createOnnxEngine } from './onnx/engine.ts';

it('keeps an adapter with its base, so that the engine answers with both when neither folder is there any more', async () => {
  const root = await mkdtemp(join(tmpdir(), 'pawl-keep-checkpoint-'));
  const artifacts = openArtifacts({ home: join(root, 'home') });
  const engine = createOnnxEngine({});
  try {
    const [base, adapter] = [join(root, 'base'), join(root, 'adapter')];
    await writeTinyCheckpoint(base);
    const datum = { tokens: [1, 2, 3, 4], targets: [2, 3, 4, 5], weights: [1, 1, 1, 1] };
    const logprobs = async (name: string) => [...(await engine.forward(name, [datum])).logprobs[0]!];
    await engine.load('trained', base, { lora: { rank: 2, alpha: 4 } });
    const untrained = await logprobs('trained');
    await engine.forwardBackward('trained', [datum], { kind: 'cross_entropy' });
    await engine.optimStep('trained', { learningRate: 0.1 });
    await engine.save('trained', adapter, { optimizer: false });

    const kept = await keepCheckpoint(artifacts, adapter);
    for (const folder of [base, adapter]) await rm(folder, { recursive: true });
    expect((await artifacts.manifest(kept)).needs).toHaveLength(1);
    await engine.load('served', await artifacts.folder(kept));
    expect(await logprobs('served')).toEqual(await logprobs('trained'));
    expect(await logprobs('served')).not.toEqual(untrained);
  } finally {
    await engine.close();
    await artifacts.close();
    await rm(root, { recursive: true, force: true });
  }
});
