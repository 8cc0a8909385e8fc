import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { EngineError } from '../../errors.ts';
import { readCheckpoint, writeCheckpoint } from '../checkpoint.ts';
import type { Datum, Engine } from '../engine.ts';
import { writeTinyCheckpoint } from '../fixtures/tiny-checkpoint.ts';
import { createOnnxEngine } from '../onnx/engine.ts';
import { createTinkerEngine, type TinkerOptions } from './engine.ts';
import { type Fault, type StandIn, startStandIn } from './fixtures/stand-in.ts';

const data: Datum[] = [
  { tokens: [1, 2, 3, 4], targets: [2, 3, 4, 5], weights: [0, 1, 1, 1] },
  { tokens: [5, 6, 7], targets: [6, 7, 8], weights: [0, 2, -1] },
  { tokens: [9, 10], targets: [10, 11], weights: [1, 1] },
];
const loss = { kind: 'cross_entropy' } as const;

let scratch: string;
let base: string;
let server: StandIn;
let engine: Engine;
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'pawl-tinker-'));
  base = join(scratch, 'base');
  await writeTinyCheckpoint(base);
  server = await startStandIn({ folder: base, dialect: 'skyrl' });
});
afterAll(async () => {
  await server.close();
  await rm(scratch, { recursive: true });
});
const create = (options: Partial<TinkerOptions> = {}): Engine =>
  createTinkerEngine({
    ...{ url: server.url, apiKey: 'tml-secret', baseModel: 'base', folder: base, rank: 4 },
    ...options,
  });
beforeEach(() => {
  engine = create();
});
afterEach(async () => {
  server.faults = [];
  await engine.close();
});

const fault = (path: RegExp, kind: Fault['kind'], times = 1): Fault => ({ path, kind, times });
const askedFor = (path: string) => server.asked.filter((one) => one.path === `/api/v1/${path}`);
async function twoSteps(name: string): Promise<number[]> {
  const norms: number[] = [];
  for (let i = 0; i < 2; i++) {
    await engine.forwardBackward(name, data, loss);
    norms.push((await engine.optimStep(name, { learningRate: 0.01 })).gradNorm!);
  }
  return norms;
}

describe('a server that misbehaves is borne:', () => {
  let undisturbed: number[];
  beforeAll(async () => {
    engine = create();
    await engine.load('undisturbed', base);
    undisturbed = await twoSteps('undisturbed');
    await engine.close();
  });

  test.each([
    ['it has too much to do', [fault(/forward_backward|optim_step/, 'busy', 3)]],
    ['it is away for a moment', [fault(/forward_backward|optim_step/, 'error', 2)]],
    ['connections end before a request arrives', [fault(/forward_backward|optim_step|create_model/, 'drop', 3)]],
    ['connections end after a request was carried out', [fault(/forward_backward|optim_step/, 'drop-after', 2)]],
    ['polls end without a result', [fault(/retrieve_future/, 'drop', 2), fault(/retrieve_future/, 'drop-after', 2)]],
    ['results take their time', [fault(/retrieve_future/, 'try-again', 3), fault(/retrieve_future/, 'timeout', 2)]],
    ['heartbeats are lost', [fault(/session_heartbeat/, 'drop', 1)]],
  ])('%s', async (_, faults) => {
    server.faults = faults;
    await engine.load('m', base);
    expect(await twoSteps('m')).toEqual(undisturbed);
    expect(server.faults.every(({ times }) => times === 0)).toBe(true);
  });

  test('every try of a request carries the same idempotency key and number', async () => {
    await engine.load('m', base);
    const before = server.asked.length;
    server.faults = [fault(/forward_backward/, 'drop-after', 2)];
    await engine.forwardBackward('m', data, loss);
    const tries = server.asked.slice(before).filter(({ path }) => path.endsWith('/forward_backward'));
    expect(tries).toHaveLength(3);
    expect(new Set(tries.map(({ headers }) => headers['x-idempotency-key'])).size).toBe(1);
    expect(new Set(tries.map(({ body }) => body.seq_id)).size).toBe(1);
    expect(tries[0]!.headers['x-api-key']).toBe('tml-secret');
  });

  test('a save whose answer was lost is made again under another name', async () => {
    await engine.load('m', base);
    server.faults = [fault(/save_weights$/, 'drop-after')];
    await engine.save('m', join(scratch, 'saved-twice'));
    await engine.load('again', join(scratch, 'saved-twice'));
    const [one, two] = await Promise.all([engine.forward('m', data), engine.forward('again', data)]);
    expect(two.logprobs).toEqual(one.logprobs);
  });
});

describe('what cannot be borne is told:', () => {
  test.each([
    ['not JSON', fault(/optim_step/, 'not-json'), /not JSON: "<html>/],
    ['no id of a request', { ...fault(/optim_step/, 'other-json'), body: { ok: true } }, /request_id/],
    ['a list', { ...fault(/optim_step/, 'other-json'), body: [] }, /cannot be used/],
    [
      'logprobs that are words',
      { ...fault(/retrieve_future/, 'other-json'), body: { loss_fn_outputs: [{ logprobs: { data: ['x'] } }] } },
      /loss_fn_outputs\.0\.logprobs\.data\.0/,
    ],
    [
      'too few logprobs',
      { ...fault(/retrieve_future/, 'other-json'), body: { loss_fn_outputs: [{ logprobs: { data: [-1] } }] } },
      /answered for 1 data of 3/,
    ],
    [
      'numbers that are none',
      {
        ...fault(/retrieve_future/, 'other-json'),
        body: { loss_fn_outputs: data.map(({ tokens }) => ({ logprobs: { data: Array(tokens.length).fill(null) } })) },
      },
      /diverged/,
    ],
    [
      'a failure',
      { ...fault(/retrieve_future/, 'other-json'), body: { error: 'out of memory', category: 'server' } },
      /out of memory/,
    ],
  ] as [string, Fault, RegExp][])('%s', async (_, one, message) => {
    await engine.load('m', base, { lora: { rank: 4, alpha: 32 } });
    server.faults = [one];
    await expect(
      Promise.all([engine.forwardBackward('m', data, loss), engine.optimStep('m', { learningRate: 0 })]),
    ).rejects.toThrow(message);
  });

  test('a server that nobody is at, without the key', async () => {
    const away = create({ url: 'http://127.0.0.1:9', patienceMs: 50 });
    const error = await away.load('m', base).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(EngineError);
    expect((error as EngineError).retryable).toBe(true);
    expect((error as EngineError).message).toMatch(/http:\/\/127\.0\.0\.1:9 gave no answer/);
    expect(JSON.stringify(error) + String((error as Error).stack)).not.toContain('tml-secret');
    await away.close();
  });

  test('a result that does not come within the limit', async () => {
    const hasty = create({ limitMs: 300 });
    await hasty.load('m', base);
    server.faults = [fault(/retrieve_future/, 'try-again', 1000)];
    await expect(hasty.forward('m', data)).rejects.toThrow(/not finished request \d+ within 0 seconds/);
    server.faults = [];
    await hasty.close();
  });

  test('a folder that is not the base of the server, and a reference of another base', async () => {
    // Of the same shape, with one number changed.
    const { config, weights } = await readCheckpoint(base);
    const [name, { shape, data: numbers }] = [...weights][0]!;
    const changed = numbers.map((x, i) => (i === 7 ? x + 1 : x));
    const other = { config, weights: new Map([...weights, [name, { shape, data: changed }] as const]) };
    await writeCheckpoint(join(scratch, 'other'), other);
    await expect(engine.load('m', join(scratch, 'other'))).rejects.toThrow(/neither that model nor something/);
    await engine.load('m', base);
    await engine.save('m', join(scratch, 'of-base'));
    const elsewhere = create({ baseModel: 'another' });
    await expect(elsewhere.load('m', join(scratch, 'of-base'))).rejects.toThrow(/was trained over base/);
    await elsewhere.close();
  });
});

describe.each(['all', 'models'] as const)('a server that was started again and forgot %s', (forget) => {
  test('has lost the models, says so, and goes on from what was saved', async () => {
    engine = create({ heartbeatMs: 1_000_000 });
    await engine.load('m', base);
    await twoSteps('m');
    const saved = join(scratch, `saved-${forget}`);
    await engine.save('m', saved);
    const expected = await twoSteps('m');
    await server.restart(forget);
    const error = await engine.forward('m', data).catch((caught: unknown) => caught);
    expect((error as EngineError).retryable).toBe(true);
    expect(await engine.models()).toEqual([]);
    await expect(engine.optimStep('m', { learningRate: 0 })).rejects.toThrow(/no model called m/);
    const { version } = await engine.load('m', saved);
    expect(version).toBe(2);
    expect(await twoSteps('m')).toEqual(expected);
  });

  test('is found out by the heartbeat, before anything is asked', async () => {
    if (forget === 'models') return; // such a server still knows the session
    engine = create({ heartbeatMs: 20 });
    await engine.load('m', base);
    await server.restart(forget);
    while ((await engine.models()).length > 0) await new Promise((go) => setTimeout(go, 10));
    expect((await engine.load('m', base)).version).toBe(0);
  });
});

test('a copy of the base is the base', async () => {
  await cp(base, join(scratch, 'copy'), { recursive: true });
  expect((await engine.load('m', join(scratch, 'copy'))).kind).toBe('trainable');
});

test('batches have few sizes, and what fills them up changes nothing', async () => {
  const five = [...data, ...data.slice(0, 2)];
  await engine.load('m', base);
  const from = server.asked.length;
  const result = await engine.forwardBackward('m', five, loss);
  expect(result.logprobs).toHaveLength(5);
  const sent = server.asked.slice(from).find(({ path }) => path.endsWith('/forward_backward'))!;
  expect((sent.body.forward_backward_input as { data: unknown[] }).data).toHaveLength(6);
  const { gradNorm } = await engine.optimStep('m', { learningRate: 0 });

  const embedded = createOnnxEngine({ threads: 1 });
  await embedded.load('m', base, { lora: { rank: 4, alpha: 32, seed: 0 } });
  const { loss: here } = await embedded.forwardBackward('m', five, loss);
  expect(result.loss).toBeCloseTo(here, 4);
  expect(gradNorm! / (await embedded.optimStep('m', { learningRate: 0 })).gradNorm!).toBeCloseTo(1, 4);
  await embedded.close();
});

test('a step of several calls is the step of their sum, though the server takes means', async () => {
  const embedded = createOnnxEngine({ threads: 1 });
  await embedded.load('m', base, { lora: { rank: 4, alpha: 32, seed: 0 } });
  await engine.load('m', base);
  for (const one of [engine, embedded])
    for (let i = 0; i < 4; i++) {
      await one.forwardBackward('m', data, loss);
      await one.forwardBackward('m', [data[i % 2]!], loss);
      await one.optimStep('m', { learningRate: 0.01 });
    }
  const [there, here] = await Promise.all([engine.forward('m', data), embedded.forward('m', data)]);
  for (const [i, lps] of there.logprobs.entries())
    for (const [t, lp] of lps.entries()) expect(lp).toBeCloseTo(here.logprobs[i]![t]!, 3);
  await embedded.close();
});

test('a place at the server is taken when it is needed and given back', async () => {
  await engine.load('read', base);
  await engine.sample('read', [[1, 2]], { maxTokens: 2 });
  expect(server.loaded).toBe(0);
  await engine.forwardBackward('read', data, loss);
  expect(server.loaded).toBe(1);
  await engine.snapshot('read', 'frozen');
  expect(server.loaded).toBe(1);
  const before = await engine.sample('frozen', [[1, 2]], { maxTokens: 4, seed: 1, stopTokens: [] });
  await engine.optimStep('read', { learningRate: 0.1 });
  const after = await engine.sample('frozen', [[1, 2]], { maxTokens: 4, seed: 1, stopTokens: [] });
  expect(after).toEqual(before);
  expect(server.loaded).toBe(2);
  await engine.unload('frozen');
  expect(server.loaded).toBe(1);
  await engine.close();
  expect(server.loaded).toBe(0);
});

test('samples under way keep a step waiting where the server samples in the place that trains', async () => {
  await engine.load('m', base);
  await engine.forwardBackward('m', data, loss);
  const from = server.asked.length;
  server.faults = [fault(/asample/, 'busy', 2)];
  await Promise.all([
    engine.sample('m', [[1, 2], [3]], { maxTokens: 3, stopTokens: [] }),
    engine.optimStep('m', { learningRate: 0.1 }),
  ]);
  const order = server.asked
    .slice(from)
    .flatMap(({ path }) => (/asample|optim_step/.test(path) ? [path.slice(8)] : []));
  expect(order.at(-1)).toBe('optim_step');
  expect(order.filter((path) => path === 'optim_step')).toHaveLength(1);
});

test('what is asked together is carried out in order, and nothing is awaited in between', async () => {
  await engine.load('m', base, { lora: { rank: 4, alpha: 32 } });
  server.faults = [fault(/retrieve_future/, 'try-again', 1)];
  const from = server.asked.length;
  const results = await Promise.all(
    [0, 1].flatMap(() => [engine.forwardBackward('m', data, loss), engine.optimStep('m', { learningRate: 0.01 })]),
  );
  const sent = server.asked
    .slice(from)
    .flatMap(({ path }) => (/forward_backward|optim_step/.test(path) ? [path.slice(8)] : []));
  expect(sent).toEqual(['forward_backward', 'optim_step', 'forward_backward', 'optim_step']);
  expect(results.flatMap((one) => ('version' in one ? [one.version] : []))).toEqual([1, 2]);
});

test('a saved snapshot is an adapter that the embedded engine computes the same with', async () => {
  await engine.load('m', base);
  await twoSteps('m');
  await engine.snapshot('m', 'frozen');
  const folder = join(scratch, 'adapter');
  await engine.save('frozen', folder);
  expect((await readCheckpoint(folder)).adapter).toMatchObject({ rank: 4, alpha: 32 });
  expect(JSON.parse(await readFile(join(folder, 'tinker.json'), 'utf8'))).toMatchObject({ baseModel: 'base' });
  const embedded = createOnnxEngine({ threads: 1 });
  await embedded.load('m', folder);
  const [there, here] = await Promise.all([engine.forward('m', data), embedded.forward('m', data)]);
  for (const [i, lps] of there.logprobs.entries())
    for (const [t, lp] of lps.entries()) expect(lp).toBeCloseTo(here.logprobs[i]![t]!, 5);
  await embedded.close();
  expect((await engine.load('again', folder)).lora).toEqual({ rank: 4, alpha: 32 });
});

test('the session is told that we live', async () => {
  engine = create({ heartbeatMs: 10 });
  await engine.load('m', base);
  const from = askedFor('session_heartbeat').length;
  while (askedFor('session_heartbeat').length < from + 3) await new Promise((go) => setTimeout(go, 5));
});

describe('an archive that workers wrote at the same time', () => {
  const savedWith = async (times: number) => {
    await engine.load('m', base, { lora: { rank: 4, alpha: 8 } });
    await Promise.all([engine.forwardBackward('m', data, loss), engine.optimStep('m', { learningRate: 0.01 })]);
    await engine.snapshot('m', 'frozen');
    server.faults = [{ path: /\/download$/, times, kind: 'damaged' }];
    await engine.save('frozen', join(scratch, `raced-${times}`));
  };

  test('is saved anew until it is whole', async () => {
    await savedWith(2);
    expect((await readFile(join(scratch, 'raced-2', 'adapter_model.safetensors'))).length).toBeGreaterThan(8);
  });

  test('is refused if it never is', async () => {
    await expect(savedWith(100)).rejects.toThrow('The archive is damaged');
  });
});
