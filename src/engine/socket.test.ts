import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { writeCheckpoint } from './checkpoint.ts';
import { engineConformance } from './conformance.ts';
import { echoEngine, writeEchoCheckpoint } from './fixtures/echo-engine.ts';
import { createFrameReader, encodeFrame } from './frames.ts';
import { configOfSpec, parseSpec } from './model-spec.ts';
import { modelConfigJson, parameterShapes } from './onnx/config.ts';
import { createOnnxEngine } from './onnx/engine.ts';
import { randomWeights } from './onnx/weights.ts';
import { createServedModels, type ServedModels } from './served.ts';
import { type ListenHandle, listenEngine, newSocketPath, type RemoteEngine, remoteEngine } from './socket.ts';

describe('frames', () => {
  const message = {
    text: 'é\u0000',
    loss: Number.NaN,
    list: [{ tokens: Int32Array.of(1, -2, 2 ** 31 - 1) }, { logprobs: Float32Array.of(0.1, Number.NaN, -0) }],
    empty: new Float32Array(0),
    view: new Int32Array(Int32Array.of(9, 8, 7, 6).buffer, 4, 2),
  };

  test('come back as they were, however the bytes are cut', () => {
    const bytes = Buffer.concat([...encodeFrame(message), ...encodeFrame({ second: true })]);
    for (const step of [1, 3, 8, 9, 64, bytes.length]) {
      const read = createFrameReader();
      const messages: unknown[] = [];
      for (let i = 0; i < bytes.length; i += step) messages.push(...read(bytes.subarray(i, i + step)));
      expect(messages).toEqual([{ ...message, view: Int32Array.of(8, 7) }, { second: true }]);
    }
  });

  test.each<[string, Buffer, RegExp]>([
    ['a size beyond the cap', Buffer.from('ffffffffffffffff', 'hex'), /claims 4294967295 \+ 4294967295 bytes/],
    ['no JSON', frame('{', 0), /does not hold JSON/],
    ['an array it does not hold', frame('{"a":{"$array":["i32",2]}}', 4), /refers to an array/],
    ['bytes nobody refers to', frame('{}', 4), /holds 4 bytes of arrays but refers to 0/],
    ['an array of no known kind', frame('{"a":{"$array":["constructor",1]}}', 4), /refers to an array/],
    ['endless nesting', frame(`${'['.repeat(1000)}${']'.repeat(1000)}`, 0), /too deeply/],
  ])('with %s are refused', (_, bytes, error) => {
    expect(() => createFrameReader()(bytes)).toThrow(error);
  });
});

function frame(header: string, bytes: number): Buffer {
  const sizes = Buffer.alloc(8);
  sizes.writeUInt32LE(header.length, 0);
  sizes.writeUInt32LE(bytes, 4);
  return Buffer.concat([sizes, Buffer.from(header), Buffer.alloc(bytes)]);
}

describe('an engine behind a socket', () => {
  let dir: string;
  let gate: Promise<void> | undefined;
  const inner = echoEngine((prompt) => `${prompt}!`, { onStep: async () => gate ?? undefined });
  let models: ServedModels;
  let listening: ListenHandle;
  let engine: RemoteEngine;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'pawl-socket-'));
    await writeEchoCheckpoint(join(dir, 'echo'));
    models = createServedModels(inner);
    listening = await listenEngine({ engine: inner, models, path: newSocketPath() });
    engine = remoteEngine(listening.path);
  });
  afterAll(async () => {
    await engine.close();
    await listening.close();
    await rm(dir, { recursive: true });
  });

  const byte = (text: string) => models.list()[0]!.tokenizer!.encode(text);

  test('loads, trains, saves, snapshots and unloads as if it were here', async () => {
    const info = await engine.load('policy', join(dir, 'echo'));
    expect(info).toMatchObject({ name: 'policy', kind: 'trainable', vocabulary: 265 });
    const data = [{ tokens: [1, 2], targets: [2, 3], weights: [1, 0.5] }];
    const forward = await engine.forward('policy', data);
    expect(forward).toEqual({ loss: 1, logprobs: [Float32Array.of(-0.5, -0.5)] });
    await engine.forwardBackward('policy', data, { kind: 'cross_entropy' });
    expect(await engine.optimStep('policy', { learningRate: 1 })).toEqual({ gradNorm: 1.5, version: 1 });
    await engine.save('policy', join(dir, 'saved'));
    expect(models.loaded()).toEqual([{ name: 'policy', folder: join(dir, 'saved') }]);
    expect(await engine.snapshot('policy', 'frozen')).toMatchObject({ name: 'frozen', kind: 'snapshot', version: 1 });
    expect((await engine.models()).map(({ name }) => name)).toEqual(['policy', 'frozen']);
    await engine.unload('frozen');
    // Loaded again from where it was saved, it goes on at the version it had.
    expect(await engine.replace('policy', join(dir, 'saved'))).toMatchObject({ name: 'policy', version: 1 });
  });

  test('samples, and shows the tokens as they come', async () => {
    const seen: number[][] = [];
    const [result] = await engine.sample(
      'policy',
      [byte('ab')],
      { maxTokens: 10, n: 2, promptLogprobs: true },
      { onToken: (...token) => seen.push(token) },
    );
    const expected = byte('ab!');
    expect(result!.samples.map(({ tokens }) => [...tokens])).toEqual([expected, expected]);
    expect(result!.samples[0]!.rawLogprobs).toBeInstanceOf(Float32Array);
    expect([...result!.promptLogprobs!]).toEqual([Number.NaN, -1]);
    expect(seen).toEqual([...expected.map((token) => [0, 0, token]), ...expected.map((token) => [0, 1, token])]);
  });

  test('an error keeps its words', async () => {
    await expect(engine.forward('nobody', [])).rejects.toThrow(/no model "nobody" here; loaded: policy/);
    await expect(engine.forwardBackward('policy', [], { kind: 'ppo', clipLow: 0.8, clipHigh: 1.2 })).rejects.toThrow(
      'This engine has no loss ppo.',
    );
    await expect(engine.optimStep('policy', { learningRate: '1' as never })).rejects.toThrow(
      /does not understand this call: adam.learningRate/,
    );
  });

  test('aborting, or losing the client, stops the sampling', async () => {
    for (const end of ['abort', 'close'] as const) {
      gate = new Promise(() => {}); // only the end of the sampling passes it
      const before = inner.aborted;
      const leave = new AbortController();
      const other = remoteEngine(listening.path);
      const sampling = other.sample('policy', [byte('x')], { maxTokens: 5 }, { signal: leave.signal });
      const failed = expect(sampling).rejects.toThrow(end === 'abort' ? 'Sampling was aborted.' : /went away/);
      await until(() => inner.running === 1);
      if (end === 'abort') leave.abort();
      else await other.close();
      await failed;
      await until(() => inner.running === 0);
      expect(inner.aborted).toBe(before + 1);
      await other.close();
    }
    gate = undefined;
  });

  test('strangers who do not speak the protocol are shown out, and nobody else notices', async () => {
    for (const bytes of [Buffer.from('GET / HTTP/1.1\r\n\r\n'), frame('{"id":"x"}', 0), Buffer.alloc(64, 255)]) {
      const socket = connect(listening.path);
      await new Promise<void>((done) => {
        socket.on('error', () => {});
        socket.once('close', () => done());
        socket.end(bytes);
      });
    }
    expect(await engine.models()).toHaveLength(1);
  });

  test.skipIf(process.platform === 'win32')(
    'only its user may connect, and two engines cannot share a path',
    async () => {
      expect((await stat(listening.path)).mode & 0o777).toBe(0o600);
      await expect(listenEngine({ engine: inner, models, path: listening.path })).rejects.toThrow(/already listens/);
      const stale = join(dir, 'stale.sock');
      await writeFile(stale, '');
      const again = await listenEngine({ engine: inner, models, path: stale });
      await again.close();
      await expect(listenEngine({ engine: inner, models, path: `/tmp/${'x'.repeat(200)}` })).rejects.toThrow(
        /too long/,
      );
    },
  );

  test('an engine that is not there is an error worth a retry', async () => {
    const nobody = remoteEngine(newSocketPath());
    await expect(nobody.models()).rejects.toMatchObject({
      retryable: true,
      message: expect.stringMatching(/cannot be reached/),
    });
    await nobody.close();
    await expect(nobody.models()).rejects.toThrow(/was closed/);
  });
});

describe('the embedded engine behind a socket conforms:', () => {
  let scratch: string;
  let folder: string;
  beforeEach(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'pawl-socket-'));
    folder = join(scratch, 'checkpoint');
    const config = configOfSpec(parseSpec('d16-l2-h2-kv1-v24-f24-c48'));
    const shapes = parameterShapes(config);
    // Ten times the usual start: differences between tokens are large enough to see.
    const weights = [...randomWeights(config, 5)].map(([name, data]) => {
      const shape = shapes.get(name)!;
      return [name, { shape, data: shape.length === 1 ? data : data.map((x) => 10 * x) }] as const;
    });
    await writeCheckpoint(folder, { config: modelConfigJson(config), weights: new Map(weights) });
  });
  afterEach(() => rm(scratch, { recursive: true }));

  const checks = engineConformance(async () => {
    const inner = createOnnxEngine({ threads: 1 });
    const models = createServedModels(inner);
    const listening = await listenEngine({ engine: inner, models, path: newSocketPath() });
    const engine = remoteEngine(listening.path);
    return {
      engine,
      folder,
      scratch,
      async close() {
        await engine.close();
        await listening.close();
        await inner.close();
      },
    };
  });
  test.each(checks)('$name', ({ run }) => run());
});

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((done) => setTimeout(done, 2));
}
