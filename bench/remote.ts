/**
 * What Pawl itself takes of a GRPO step at a server that speaks Tinker's protocol. The server is a process of its own, computes nothing and
 * answers at once, so that the time of a step is Pawl's: playing, reading and writing the wire, advantages, the run's records. A step is 64
 * attempts of 512 tokens in 8 groups, with KL to the reference: three passes over all of it, a step of the optimizer, a new sampler.
 *
 *   overhead_ms_per_step   this process's processor time a step, mean over the steps after the first ones; bar 150
 *   tokens_per_s           tokens sampled and trained on (as `pawl runs show` counts them) by that time, which no engine can exceed
 *   wall_ms_per_step       the clock's, the server's share included: read it on a quiet machine only
 *
 * Options: --steps 30 (the first third is left out) --dialect skyrl|tinker --lag 0|1 --hold-ms 0 (what the server takes for each request)
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { createTinkerEngine } from '../src/engine/tinker/engine.ts';
import { loadChatCodec } from '../src/simulate/chat-codec.ts';
import { type Environment, makeTasks } from '../src/simulate/environment.ts';
import { hash } from '../src/simulate/random.ts';
import { environmentSource } from '../src/train/episodes.ts';
import { grpo } from '../src/train/grpo.ts';
import { createRun, train } from '../src/train/run.ts';
import { memoryRunStore } from '../src/train/run-record.ts';

const { values: options } = parseArgs({
  options: {
    steps: { type: 'string', default: '30' },
    dialect: { type: 'string', default: 'skyrl' },
    lag: { type: 'string', default: '0' },
    'hold-ms': { type: 'string', default: '0' },
  },
});
const { dialect } = options;
if (dialect !== 'skyrl' && dialect !== 'tinker') throw new Error(`--dialect is skyrl or tinker, not ${dialect}.`);
const [groups, attempts, size] = [8, 8, 512];

/** One question, one answer of 512 tokens; its reward is a hash of it, so that no group is flat. */
const writing: Environment<{ readonly about: number }, null> = {
  name: 'writing',
  system: 'You are the support agent of a shop. Follow the policy with care. '.repeat(4),
  types: { letter: (random) => ({ about: random.integer(1000, 9999) }) },
  data: z.object({ about: z.number() }),
  database: () => null,
  tools: [],
  user: ({ data: { about } }) => ({ open: () => `Write a letter about order ${about}.`, answer: () => null }),
  gradeTurn: () => ({ reward: 0, parts: {}, reasons: [] }),
  gradeEnd: ({ messages }) => {
    const reward = hash(messages.at(-1)?.content ?? '') / 2 ** 32;
    return { reward, success: reward > 0.5, parts: {}, reasons: [] };
  },
  limits: {
    ...{ turns: 1, callsPerTurn: 1, mistakes: 0, tokensPerTurn: size, tokens: 1024 },
    ...{ seconds: 600, characters: 10_000 },
  },
};

const root = mkdtempSync(join(tmpdir(), 'pawl-remote-'));
const base = join(root, 'model');
cpSync('examples/support-desk/model', base, { recursive: true });
const config = JSON.parse(readFileSync(join(base, 'config.json'), 'utf8'));
writeFileSync(join(base, 'config.json'), JSON.stringify({ ...config, max_position_embeddings: 1024 }));

const script = fileURLToPath(new URL('../src/engine/tinker/fixtures/instant.ts', import.meta.url));
const server = spawn(process.execPath, ['--import', 'tsx', script, '--hold-ms', options['hold-ms']], {
  stdio: ['pipe', 'pipe', 'inherit'],
});
try {
  const [line] = (await once(server.stdout.setEncoding('utf8'), 'data')) as [string];
  const engine = createTinkerEngine({ url: line.trim(), baseModel: 'base', folder: base, dialect, rank: 8 });
  const steps = Number(options.steps);
  const source = environmentSource(writing, makeTasks(writing, 'train', 200, 1), await loadChatCodec(base));
  const stages = [grpo(source, { steps, tasksPerStep: groups, attempts, lag: Number(options.lag) })];
  const store = memoryRunStore();
  const about = { id: 'bench', agent: 'bench', recipe: 'grpo', settings: {}, base, seed: 1, budget: {} };
  await createRun(store, { ...about, folder: join(root, 'run') }, stages, Date.now());
  const skipped = Math.floor(steps / 3);
  let used = process.cpuUsage();
  let began = performance.now();
  let tokens = 0;
  for await (const { step, values } of train('bench', { engine, store, stages, lora: { rank: 8, alpha: 16 } })) {
    if (values.zero_variance_fraction !== 0) throw new Error('A group was flat, so less was trained on than is meant.');
    if (step >= skipped) tokens += values.tokens ?? 0;
    else [used, began] = [process.cpuUsage(), performance.now()];
  }
  const { user, system } = process.cpuUsage(used);
  const wall = performance.now() - began;
  const counted = steps - skipped;
  await engine.close();
  const milliseconds = (user + system) / 1000 / counted;
  console.log(
    JSON.stringify({
      bench: 'remote',
      dialect,
      steps: counted,
      overhead_ms_per_step: round(milliseconds),
      tokens_per_s: Math.round(tokens / counted / (milliseconds / 1000)),
      wall_ms_per_step: round(wall / counted),
    }),
  );
} finally {
  server.stdin.end();
  rmSync(root, { recursive: true, force: true });
}

function round(x: number): number {
  return Math.round(x * 10) / 10;
}
