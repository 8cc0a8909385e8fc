/**
 * An adapter that the embedded engine trained, and one that `pawl train` trained at SkyRL, served by vLLM itself: a canary through the gateway
 * moves traffic to it and back, and what vLLM computes with it is what our engine computes. Each alone: `-t 'the embedded engine'`,
 * `-t SkyRL`. What it needs and where it is installed: vllm-server.ts, and for the second skyrl-server.ts.
 */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { readCheckpoint, writeCheckpoint } from '../src/engine/checkpoint.ts';
import type { Datum, Engine } from '../src/engine/engine.ts';
import { createOnnxEngine } from '../src/engine/onnx/engine.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';
import { leftOut, pythonMissing } from './python.ts';
import { startSkyRL } from './skyrl-server.ts';
import { startVllm, type Vllm } from './vllm-server.ts';

// The first run installs several GB, and a start takes a minute and more.
vi.setConfig({ testTimeout: 3_600_000, hookTimeout: 3_600_000 });

type Trainer = {
  readonly name: string;
  /** Trains an adapter over `model` and writes it to `adapter`. */
  readonly train: (model: string, adapter: string, root: string) => Promise<void>;
};
const trainers: readonly Trainer[] = [
  { name: 'the embedded engine', train: trainHere },
  { name: 'SkyRL', train: trainAtSkyRL },
];

describe.skipIf(pythonMissing !== null).each(trainers)(`vLLM with an adapter of $name${leftOut}`, ({ name, train }) => {
  const root = mkdtempSync(join(tmpdir(), 'pawl-vllm-'));
  const model = join(root, 'model');
  const adapter = join(root, 'adapter');
  const configFile = join(root, 'pawl.config.ts');
  let engine: Engine;
  let vllm: Vllm;
  let pawl: PawlProcess;

  beforeAll(async () => {
    const { config, weights, files } = await readCheckpoint('examples/support-desk/model');
    await writeCheckpoint(model, { config, weights, files });
    await train(model, adapter, root);
    engine = createOnnxEngine({});
    await engine.load('tuned', adapter);
    await engine.load('base', model);
    vllm = await startVllm({ model, name: 'desk-base', folder: join(root, 'server'), context: 256 });
    const settings = {
      agents: [
        {
          name: 'desk',
          deploy: { steps: [1], holdSeconds: 3600, promotion: { rule: 'checks' }, shadow: { share: 0 } },
        },
      ],
      upstreams: { vllm: { baseUrl: vllm.url, adapters: { kind: 'vllm', folder: join(root, 'seen') } } },
    };
    writeFileSync(configFile, `export default ${JSON.stringify(settings)};\n`);
    pawl = await startPawl({}, undefined, undefined, ['--config', configFile]);
  });
  afterAll(async () => {
    await pawl?.remove();
    await vllm?.kill();
    await engine?.close();
    rmSync(root, { recursive: true, force: true });
  });
  afterEach(({ task }) => {
    if (task.result?.state === 'fail') console.error(vllm.log());
  });

  const command = async (...args: string[]): Promise<string> => {
    const env = { ...process.env, DATABASE_URL: '', PAWL_HOME: pawl.home };
    const all = ['bin/pawl.js', ...args, '--config', configFile];
    return (await promisify(execFile)(process.execPath, all, { env })).stdout;
  };
  type Answer = {
    prompt_token_ids: number[];
    choices: { token_ids: number[]; logprobs: { content: { logprob: number }[] } }[];
  };
  let asks = 0;
  const ask = async (content = 'Where is my order 1234?') => {
    const response = await fetch(`${pawl.url}/t/t${++asks}/u/ann/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${pawl.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        ...{ model: 'desk', max_tokens: 16, temperature: 0, logprobs: true, return_token_ids: true },
        messages: [{ role: 'user', content }],
      }),
    });
    return { release: response.headers.get('x-pawl-release'), answer: (await response.json()) as Answer };
  };
  const answersAs = (release: string) =>
    until(
      () => ask(),
      (answer) => answer.release === release,
      500,
    );

  test('answers with the adapter as our engine would, through a canary', async () => {
    await command('releases', 'create', 'v1', '--upstream', 'vllm', '--model', 'desk-base');
    await command('releases', 'serve', 'v1');
    await answersAs('v1');
    await command('releases', 'create', 'v2', '--upstream', 'vllm', '--adapter', adapter);
    await command('rollouts', 'start', '--candidate', 'v2', '--force', '--reason', 'to see it move');
    await answersAs('v2');
    expect(await command('releases', 'show', 'v2')).toMatch(/adapter +loaded at upstream vllm/);
    let [furthest, moved] = [0, 0];
    for (let n = 0; n < 20; n++) {
      const { release, answer } = await ask(`Where is my order ${1000 + 37 * n}?`);
      expect(release).toBe('v2');
      const [{ token_ids: written, logprobs }] = answer.choices as [Answer['choices'][number]];
      const all = [...answer.prompt_token_ids, ...written];
      const datum = { tokens: all.slice(0, -1), targets: all.slice(1), weights: all.slice(1).map(() => 1) };
      const [ours] = (await engine.forward('tuned', [datum])).logprobs;
      const [untrained] = (await engine.forward('base', [datum])).logprobs;
      const from = answer.prompt_token_ids.length - 1;
      for (const [i, { logprob }] of logprobs.content.entries()) {
        furthest = Math.max(furthest, Math.abs(logprob - ours![from + i]!));
        moved = Math.max(moved, Math.abs(logprob - untrained![from + i]!));
      }
    }
    console.log(`${name}: logprobs of 20 conversations differ by ${furthest.toExponential(1)} at most`);
    expect(furthest).toBeLessThan(1e-3);
    expect(moved).toBeGreaterThan(0.1); // else it is the base that answers
  });

  test('is told again after it was restarted, and has nothing of it after a rollback', async () => {
    vllm = await vllm.restart();
    await answersAs('v2');
    await command('rollouts', 'abort', 'v2-r1', '--reason', 'the test is over');
    await answersAs('v1');
    await until(
      async () => (await (await fetch(`${vllm.url}/models`)).json()) as { data: unknown[] },
      ({ data }) => data.length === 1,
      500,
    );
    expect((await ask()).release).toBe('v1');
  });
});

async function trainHere(model: string, adapter: string): Promise<void> {
  const engine = createOnnxEngine({});
  try {
    await engine.load('tuned', model, { lora: { rank: 8, alpha: 16 } });
    const data: Datum[] = [1, 2].map((seed) => ({
      tokens: Array.from({ length: 20 }, (_, i) => (seed * 31 + i * 7) % 200),
      targets: Array.from({ length: 20 }, (_, i) => (seed * 31 + (i + 1) * 7) % 200),
      weights: Array(20).fill(1 / 40),
    }));
    for (let step = 0; step < 5; step++) {
      await engine.forwardBackward('tuned', data, { kind: 'cross_entropy' });
      await engine.optimStep('tuned', { learningRate: 0.003 });
    }
    await engine.save('tuned', adapter, { optimizer: false });
  } finally {
    await engine.close();
  }
}

/** `pawl train` on two dozen conversations, in a home of its own. */
async function trainAtSkyRL(model: string, adapter: string, root: string): Promise<void> {
  const server = await startSkyRL({ model, folder: join(root, 's') });
  try {
    const at = join(root, 'training');
    mkdirSync(at);
    const examples = Array.from({ length: 24 }, (_, i) => ({
      messages: [
        { role: 'user', content: `Where is my order ${1000 + 37 * i}?` },
        { role: 'assistant', content: `Order ${1000 + 37 * i} was sent.` },
      ],
    }));
    writeFileSync(join(at, 'examples.jsonl'), examples.map((one) => `${JSON.stringify(one)}\n`).join(''));
    const settings = {
      agents: [{ name: 'desk', train: { base: model, recipe: 'sft' } }],
      engine: { kind: 'tinker', url: server.url, baseModel: model, folder: model },
    };
    writeFileSync(join(at, 'pawl.config.ts'), `export default ${JSON.stringify(settings)};\n`);
    const args = ['train', '--examples', 'examples.jsonl', ...'--lora 8 --learning-rate 0.003 --no-probe'.split(' ')];
    const env = { ...process.env, DATABASE_URL: '', PAWL_HOME: join(at, 'home') };
    const all = [resolve('bin/pawl.js'), ...args, '--id', 'there', '--json'];
    const { stdout } = await promisify(execFile)(process.execPath, all, { cwd: at, env });
    cpSync(JSON.parse(stdout).model, adapter, { recursive: true });
  } finally {
    await server.kill();
  }
}
