/**
 * `pawl engine` serves a model from this machine; `pawl model inspect|convert|new` look at, rewrite and make checkpoint
 * folders. This file parses arguments and prints; the work is in process.ts, checkpoint.ts and their neighbours.
 */
import { rmSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { basename, resolve } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { EngineError } from '../errors.ts';
import { checkCheckpoint } from './check-checkpoint.ts';
import {
  type CheckpointSummary,
  inspectCheckpoint,
  mergeAdapter,
  readCheckpoint,
  writeCheckpoint,
} from './checkpoint.ts';
import { type ModelSpec, parseSpec, specHelp } from './model-spec.ts';
import { newModel } from './new-model.ts';
import { familyOf, type ModelConfig } from './onnx/config.ts';
import { createOnnxEngine } from './onnx/engine.ts';
import { Graph } from './onnx/graph.ts';
import { batchBytes, cacheBytes, inUnits, machineMemory, modelBytes } from './onnx/memory.ts';
import { linear } from './onnx/ops.ts';
import { DEFAULT_CACHE_BYTES } from './onnx/sampler.ts';
import { createSession, float32 } from './onnx/session.ts';
import { hasParent, notify, runEngine } from './process.ts';
import { isLoopback } from './serve.ts';
import type { Loaded } from './served.ts';
import { smallestVocabulary } from './tokenizer-train.ts';

const whole =
  (least: number, most = Number.MAX_SAFE_INTEGER) =>
  (text: string) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < least || value > most) {
      throw new InvalidArgumentError(`Give a whole number from ${least} to ${most}.`);
    }
    return value;
  };

// ---- pawl engine ---------------------------------------------------------------------------------------------------

type EngineOptions = {
  model?: string[];
  name?: string[];
  host: string;
  port: number;
  socket?: string;
  threads?: number;
  memory?: number;
};

export function engineCommand(): Command {
  return new Command('engine')
    .description(
      'Serve models from this machine: an OpenAI-compatible API, and a local socket for loading and training.',
    )
    .option('-m, --model <folder...>', 'checkpoint folders in the Hugging Face layout')
    .option('-n, --name <name...>', "their names, in the same order (default: the folders' names)")
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('-p, --port <port>', 'port to listen on; 0 for any free one', whole(0, 65_535), 4701)
    .option('--socket <path>', 'path of the local socket (default: a new one in the temporary folder)')
    .option('-t, --threads <n>', 'threads of one computation (default: all cores)', whole(1, 1024))
    .option(
      '--memory <bytes>',
      'most memory for all models together (default: three quarters of what there is)',
      whole(1),
    )
    .addHelpText(
      'after',
      `
Example:
  pawl model new d128-l4-h4-kv2-v512 models/tiny
  pawl engine --model models/tiny
  curl localhost:4701/v1/chat/completions -H 'content-type: application/json' \\
    -d '{"model": "tiny", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 20}'
`,
    )
    .action(serveModels);
}

async function serveModels(options: EngineOptions): Promise<void> {
  const child = hasParent();
  try {
    const engine = createOnnxEngine({
      ...(options.threads === undefined ? {} : { threads: options.threads }),
      ...(options.memory === undefined ? {} : { memory: options.memory }),
    });
    const running = await runEngine({
      engine,
      load: modelsToLoad(options),
      host: options.host,
      port: options.port,
      ...(options.socket === undefined ? {} : { socket: options.socket }),
      lenient: process.env.PAWL_ENGINE_RESTART === '1',
      log: (line) => console.error(line),
    });
    let stopping = false;
    const stop = async () => {
      if (stopping) process.exit(130);
      stopping = true;
      await running.close();
      process.exit(0);
    };
    process.on('SIGTERM', () => void stop());
    // Ctrl-C reaches every process of the terminal. A parent still has answers to give and steps to end: it says when.
    process.on('SIGINT', () => void (child || stop()));
    // The parent is gone: so are we, at once, for nobody waits for an answer.
    const leave = () => {
      if (process.platform !== 'win32') rmSync(running.socket, { force: true });
      process.exit(0);
    };
    if (child) process.on('disconnect', leave);
    if (child && !process.connected) leave();
    notify({ kind: 'ready', url: running.url, port: running.port, socket: running.socket });
    if (!child) {
      const line = (name: string, value: string) => console.log(`  ${name.padEnd(10)}${value}`);
      console.log('Engine');
      line('api', `${running.url}/v1`);
      if (!isLoopback(options.host))
        line('note', 'anyone who can reach this address can use the models: there are no keys here');
      line('socket', running.socket);
      for (const { name, info, folder } of running.models.list()) {
        line('model', `${name}  ${count(info.parameters)} parameters, context ${count(info.context)}, from ${folder}`);
      }
      if (running.models.list().length === 0)
        line('model', 'none yet: start with --model FOLDER, or load one on the socket');
    }
  } catch (error) {
    if (!child) throw error;
    notify({ kind: 'failed', message: (error as Error).message });
    process.exitCode = 1;
    process.disconnect?.();
  }
}

function modelsToLoad({ model = [], name = [] }: EngineOptions): Loaded[] {
  if (hasParent()) return JSON.parse(process.env.PAWL_ENGINE_LOAD!) as Loaded[];
  if (name.length > model.length) {
    throw new EngineError(`--name is given ${name.length} times, but --model only ${model.length}.`);
  }
  const models = model.map((folder, i) => ({ name: name[i] ?? basename(resolve(folder)), folder }));
  const twice = models.find(({ name }, i) => models.findIndex((other) => other.name === name) !== i);
  if (twice) throw new EngineError(`Two models are called ${twice.name}; give them names with --name.`);
  return models;
}

// ---- pawl model ----------------------------------------------------------------------------------------------------

export function modelCommand(): Command {
  return new Command('model')
    .description('Look at, convert and make model checkpoints.')
    .addCommand(
      new Command('inspect')
        .description('What a checkpoint holds, the memory it needs here, and how fast it may run.')
        .argument('<folder>', 'checkpoint folder')
        .option('--json', 'print JSON')
        .action(inspect),
    )
    .addCommand(
      new Command('convert')
        .description('Write a checkpoint again: as float32 or bfloat16, or with its adapter merged into the weights.')
        .argument('<folder>', 'checkpoint folder')
        .argument('<out>', 'folder to write; it must not exist')
        .option('--dtype <type>', 'fp32 or bf16', dtype, 'F32' as const)
        .option('--merge-adapter', 'add the adapter to the weights of its base')
        .action(convert),
    )
    .addCommand(
      new Command('new')
        .description('Make a new model with random weights and a tokenizer.')
        .argument('[spec]', `size in short, e.g. d128-l4-h4-kv2-v512 (${specHelp})`)
        .argument('[out]', 'folder to write; it must not exist')
        .option('--spec <spec>', 'the same')
        .option('--layers <n>', 'layers', whole(1, 1000))
        .option('--hidden <n>', 'hidden size', whole(2))
        .option('--heads <n>', 'attention heads', whole(1))
        .option('--kv-heads <n>', 'key/value heads (default: as many as heads)', whole(1))
        .option('--vocabulary <n>', 'tokens', whole(smallestVocabulary))
        .option('--feed-forward <n>', 'feed-forward size (default: 3 × hidden)', whole(1))
        .option('--head-dim <n>', 'size of a head (default: hidden ÷ heads)', whole(2))
        .option('--context <n>', 'most tokens of prompt and answer together (default: 1024)', whole(2))
        .option('--untied', 'output weights of their own')
        .option('--seed <n>', 'seed of the random weights', whole(0), 0)
        .option('--text <file...>', 'texts to learn the tokenizer from (default: one token per byte)')
        .action(create),
    );
}

function dtype(text: string): 'F32' | 'BF16' {
  const found = { fp32: 'F32', f32: 'F32', bf16: 'BF16' }[text.toLowerCase()];
  if (!found) throw new InvalidArgumentError('Give fp32 or bf16.');
  return found as 'F32' | 'BF16';
}

async function inspect(folder: string, options: { json?: boolean }): Promise<void> {
  const { summary, config, tokenizer } = await checkCheckpoint(folder);
  const needs = memoryNeeded(config, summary);
  const available = Math.min(process.availableMemory(), machineMemory());
  const speed = await speedHere(summary.parameters);
  if (options.json) {
    const { tensors, ...rest } = summary;
    console.log(JSON.stringify({ ...rest, tensors: tensors.size, memory: { ...needs, available }, speed }, null, 2));
    return;
  }
  const line = (name: string, value: string) => console.log(`  ${name.padEnd(12)}${value}`);
  console.log(basename(summary.folder));
  line(
    'model',
    `${familyOf(config).name}, ${config.num_hidden_layers} layers of ${count(config.hidden_size)}, ${config.num_attention_heads} heads of ${config.head_dim} (${config.num_key_value_heads} key/value)`,
  );
  line(
    'parameters',
    `${count(summary.parameters)} in ${summary.tensors.size} tensors, ${summary.dtypes.join(', ')}, ${size(summary.weightBytes)} on disk`,
  );
  line(
    'vocabulary',
    `${count(config.vocab_size)} tokens, context ${count(config.max_position_embeddings)}, ${config.tie_word_embeddings ? 'tied' : 'untied'} output`,
  );
  line('tokenizer', tokenizer ? `${count(tokenizer.vocabulary)} tokens` : 'none: only token ids can be sampled');
  if (summary.adapter) {
    const { rank, alpha, targets, parameters, base } = summary.adapter;
    line('adapter', `rank ${rank}, alpha ${alpha}, ${count(parameters)} parameters on ${targets.join(', ')}`);
    line('base', base);
  }
  line('optimizer', summary.optimizerBytes > 0 ? `${size(summary.optimizerBytes)}: training can be resumed` : 'none');
  const fits = (bytes: number) => (bytes <= available ? 'fits' : 'does not fit');
  line('to sample', `${size(needs.sample)}, ${fits(needs.sample)} in the ${size(available)} available here`);
  line('to train', `${size(needs.train)} with batches of ${count(trainBatch)} tokens, ${fits(needs.train)}`);
  line(
    'speed',
    `about ${rough(speed.train)} tokens/s to train, ${rough(speed.sample)} to sample at batch 64 (estimated from ${speed.gflops.toFixed(0)} GFLOP/s)`,
  );
}

const trainBatch = 4096;

function memoryNeeded(config: ModelConfig, summary: CheckpointSummary): { sample: number; train: number } {
  const trainable = summary.adapter?.parameters ?? summary.parameters;
  const length = Math.min(config.max_position_embeddings, 256);
  // The sampler keeps its own frozen copy of the weights, and keys and values for its rows.
  const cache = Math.min(DEFAULT_CACHE_BYTES, cacheBytes(config, 64, config.max_position_embeddings));
  return {
    sample: 2 * modelBytes(config, 0) + cache,
    train: modelBytes(config, trainable) + batchBytes(config, trainBatch / length, length, true),
  };
}

/** A matrix product tells what the machine can do; training reaches about half of it, sampling about half of that. */
async function speedHere(parameters: number): Promise<{ gflops: number; train: number; sample: number }> {
  const n = 512;
  const graph = new Graph();
  graph.output('y', linear(graph, graph.input('a', 'float32', [n, n]), graph.input('b', 'float32', [n, n])));
  const session = await createSession(graph, 'speed', { threads: availableParallelism() });
  const matrix = () => float32(new Float32Array(n * n).fill(0.5), [n, n]);
  const feeds = { a: matrix(), b: matrix() };
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 8; i++) {
    const start = performance.now();
    await session.run(feeds);
    best = Math.min(best, (performance.now() - start) / 1000);
  }
  await session.release();
  const gflops = (2 * n ** 3) / best / 1e9;
  const train = (0.5 * gflops * 1e9) / (6 * parameters);
  return { gflops, train, sample: 0.5 * train };
}

async function convert(
  folder: string,
  out: string,
  options: { dtype: 'F32' | 'BF16'; mergeAdapter?: boolean },
): Promise<void> {
  await refuseExisting(out);
  await refuseTooLarge(folder, options.mergeAdapter === true);
  const { config, weights, adapter, base, files } = await readCheckpoint(folder, { optimizer: false });
  if (options.mergeAdapter && !adapter) throw new EngineError(`${folder} holds no adapter to merge.`);
  if (adapter && !options.mergeAdapter) {
    await writeCheckpoint(out, { config, adapter: { ...adapter, base: base! }, files, dtype: options.dtype });
  } else {
    const full = adapter ? mergeAdapter(weights, adapter) : weights;
    await writeCheckpoint(out, { config, weights: full, files, dtype: options.dtype });
  }
  console.log(
    `Wrote ${out}: ${options.dtype === 'BF16' ? 'bfloat16' : 'float32'}${adapter ? (options.mergeAdapter ? ', adapter merged' : ', adapter') : ''}.`,
  );
}

/** Converting holds the whole model as float32; merging an adapter, the changed layers a second time. */
async function refuseTooLarge(folder: string, merges: boolean): Promise<void> {
  const { parameters } = await inspectCheckpoint(folder);
  const needed = 4 * parameters * (merges ? 2 : 1);
  if (needed <= machineMemory()) return;
  throw new EngineError(
    `${folder} (${count(parameters)} parameters) takes ${inUnits(needed)} to convert, more than the ${inUnits(machineMemory())} of this machine.`,
  );
}

type NewOptions = Partial<ModelSpec> & { spec?: string; seed: number; text?: string[] };

async function create(first: string | undefined, second: string | undefined, options: NewOptions): Promise<void> {
  // With the size given by options, the one argument that is left is the folder.
  const bySpec = second !== undefined ? first : options.spec;
  const out = second ?? first;
  const { spec: _, seed, text, ...given } = options;
  if (out === undefined)
    throw new EngineError('Give a folder to write, e.g. pawl model new d128-l4-h4-kv2-v512 models/tiny.');
  if (second !== undefined && options.spec !== undefined) throw new EngineError('The spec is given twice.');
  const spec = bySpec === undefined ? specOfOptions(given) : { ...parseSpec(bySpec), ...given };
  await refuseExisting(out);
  const texts = await Promise.all((text ?? []).map((file) => readFile(file, 'utf8')));
  const model = newModel(spec, { seed, texts });
  await writeCheckpoint(out, model);
  const parameters = [...model.weights.values()].reduce((sum, { data }) => sum + data.length, 0);
  console.log(
    `Wrote ${out}: ${count(parameters)} parameters, random with seed ${seed}; see it with pawl model inspect ${out}.`,
  );
}

function specOfOptions(given: Partial<ModelSpec>): ModelSpec {
  const missing = (['layers', 'hidden', 'heads', 'vocabulary'] as const).filter((key) => given[key] === undefined);
  if (missing.length > 0) {
    throw new EngineError(
      `Give a spec such as d128-l4-h4-kv2-v512, or ${missing.map((key) => `--${key}`).join(', ')}.`,
    );
  }
  return given as ModelSpec;
}

async function refuseExisting(out: string): Promise<void> {
  const exists = await stat(out).then(
    () => true,
    () => false,
  );
  if (exists) throw new EngineError(`${out} exists already; choose another folder or remove it first.`);
}

const count = (n: number) => n.toLocaleString('en-US');

const rough = (n: number) => count(Number(n.toPrecision(2)));

function size(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = bytes < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(bytes) / 10));
  return `${power === 0 ? bytes : (bytes / 1024 ** power).toFixed(1)} ${units[power]}`;
}
