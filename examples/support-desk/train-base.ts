/**
 * Trains the desk's base model from nothing: a tokenizer of 512 tokens and a Qwen3-style decoder of under a million
 * parameters, on corpus.ts. Writes the checkpoint that the demo and the benchmarks start from:
 *   node --import tsx examples/support-desk/train-base.ts [--folder examples/support-desk/model] [--tokens 5500000]
 * The last line printed is JSON: success at temperature 1 on validation tasks and on the golden set, and per task type.
 * Deterministic for a seed and a number of threads.
 */
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Message, makeTasks, play, type Task } from 'pawl';
import {
  type ChatCodec,
  chatCodec,
  createOnnxEngine,
  createTokenizer,
  type Datum,
  type Engine,
  enginePlayer,
  type ModelConfig,
  modelConfigJson,
  parameterCount,
  parameterShapes,
  randomWeights,
  readCheckpoint,
  type Tokenizer,
  tokenizerConfig,
  trainTokenizer,
  writeCheckpoint,
} from 'pawl/engine';
import { corpus } from './corpus.ts';
import { supportDesk } from './desk.ts';
import { readGolden } from './golden.ts';
import type { DeskData } from './tasks.ts';

/** One dial is the width; the rest follows. */
export const shape = { width: 128, layers: 4, heads: 4, keyValueHeads: 2, vocabulary: 512, context: 320 } as const;

export const schedule = {
  tokensPerStep: 2048,
  learningRate: 3e-3,
  warmupSteps: 40,
  weightDecay: 0.05,
  /** The customer's and the tools' words are read more than they are learned by heart. */
  heardWeight: 0.2,
} as const;

export function baseConfig(tokenizer: Tokenizer): ModelConfig {
  return {
    model_type: 'qwen3',
    hidden_size: shape.width,
    intermediate_size: 3 * shape.width,
    num_hidden_layers: shape.layers,
    num_attention_heads: shape.heads,
    num_key_value_heads: shape.keyValueHeads,
    head_dim: shape.width / shape.heads,
    vocab_size: shape.vocabulary,
    max_position_embeddings: shape.context,
    rms_norm_eps: 1e-6,
    rope_theta: 10_000,
    tie_word_embeddings: true,
    eos_token_ids: [tokenizer.controls.get('<|im_end|>')!.id],
    pad_token_id: tokenizer.controls.get('<|endoftext|>')!.id,
  };
}

/** A conversation's words as the tokenizer's trainer reads them; roles and JSON included, for they are written too. */
export function plainText(messages: readonly Message[]): string {
  return messages
    .map((one) => {
      const calls = one.role === 'assistant' ? (one.tool_calls ?? []) : [];
      const written = calls.map(
        (call) => `<tool_call>{"name":"${call.function.name}","arguments":${call.function.arguments}}</tool_call>`,
      );
      return `<|im_start|>${one.role}\n${one.content ?? ''}${written.join('')}<|im_end|>`;
    })
    .join('');
}

/** A conversation as a training example; `scale` makes the sum of a batch a mean. Our template only appends. */
export function datumOf(codec: ChatCodec, messages: readonly Message[]): { datum: Datum; mass: number } {
  const opening = codec.encode([], [], { generate: true }).length;
  const tokens: number[] = [];
  const weights: number[] = [];
  for (const message of messages) {
    const piece = codec.encode([message], [], { generate: false });
    piece.forEach((token, i) => {
      tokens.push(token);
      weights.push(message.role === 'assistant' && i >= opening ? 1 : schedule.heardWeight);
    });
  }
  const mass = weights.slice(1).reduce((sum, weight) => sum + weight, 0);
  return { datum: { tokens: tokens.slice(0, -1), targets: tokens.slice(1), weights: weights.slice(1) }, mass };
}

/** Warm up, then fall along a cosine to a tenth. */
export function learningRate(step: number, steps: number): number {
  const { warmupSteps } = schedule;
  if (step < warmupSteps) return (schedule.learningRate * (step + 1)) / warmupSteps;
  const progress = (step - warmupSteps) / Math.max(1, steps - warmupSteps);
  return schedule.learningRate * (0.1 + 0.45 * (1 + Math.cos(Math.PI * Math.min(1, progress))));
}

export type Measured = { readonly success: number; readonly types: Readonly<Record<string, number>> };

export async function measure(
  engine: Engine,
  model: string,
  codec: ChatCodec,
  tasks: readonly Task<DeskData>[],
  options: { readonly temperature: number; readonly attempts: number },
): Promise<Measured> {
  const player = enginePlayer(engine, model, codec, { temperature: options.temperature });
  const episodes = (await play(supportDesk, player, tasks, { attempts: options.attempts })).flat();
  const share = (list: typeof episodes) => list.filter(({ success }) => success).length / list.length;
  const types = [...new Set(tasks.map(({ type }) => type))];
  return {
    success: share(episodes),
    types: Object.fromEntries(types.map((type) => [type, share(episodes.filter((one) => one.type === type))])),
  };
}

export type TrainBaseOptions = {
  readonly folder: string;
  readonly tokens: number;
  readonly seed: number;
  readonly log: (line: string) => void;
};

export async function trainBase({ folder, tokens: budget, seed, log }: TrainBaseOptions): Promise<void> {
  const texts: string[] = [];
  for await (const messages of corpus({ seed, conversations: 4000 })) texts.push(plainText(messages));
  const tokenizerJson = trainTokenizer(texts, { vocabulary: shape.vocabulary });
  const settings = tokenizerConfig(shape.context);
  const template = await readFile(new URL('chat_template.jinja', import.meta.url), 'utf8');
  const tokenizer = createTokenizer(tokenizerJson, settings);
  const codec = chatCodec(tokenizer, template);
  const config = baseConfig(tokenizer);
  const files = new Map(
    Object.entries({
      'tokenizer.json': JSON.stringify(tokenizerJson),
      'tokenizer_config.json': JSON.stringify(settings, null, 2),
      'chat_template.jinja': template,
    }).map(([name, text]) => [name, new TextEncoder().encode(text)]),
  );
  log(`${parameterCount(config)} parameters, ${tokenizer.vocabulary} tokens of vocabulary`);

  const scratch = await mkdtemp(join(tmpdir(), 'train-base-'));
  const engine = createOnnxEngine();
  try {
    const values = randomWeights(config, seed);
    const shapes = parameterShapes(config);
    const weights = new Map([...values].map(([name, data]) => [name, { shape: shapes.get(name)!, data }]));
    await writeCheckpoint(join(scratch, 'new'), { config: modelConfigJson(config), weights, files });
    await engine.load('base', join(scratch, 'new'));
    await pretrain(engine, codec, budget, seed, log);

    await engine.save('base', join(scratch, 'trained'), { optimizer: false });
    // Half the bytes in the repository; what is measured below is what was written, rounding included.
    const trained = await readCheckpoint(join(scratch, 'trained'));
    await mkdir(folder, { recursive: true });
    await writeCheckpoint(folder, { config: trained.config, weights: trained.weights, files, dtype: 'BF16' });
    await engine.load('written', folder);
    const validation = makeTasks(supportDesk, 'validation', 200, 1);
    const report = {
      parameters: parameterCount(config),
      validation: await measure(engine, 'written', codec, validation, { temperature: 1, attempts: 2 }),
      golden: await measure(engine, 'written', codec, readGolden(), { temperature: 1, attempts: 4 }),
      goldenGreedy: await measure(engine, 'written', codec, readGolden(), { temperature: 0, attempts: 1 }),
    };
    log(JSON.stringify(report));
  } finally {
    await engine.close();
    await rm(scratch, { recursive: true, force: true });
  }
}

async function pretrain(
  engine: Engine,
  codec: ChatCodec,
  budget: number,
  seed: number,
  log: (line: string) => void,
): Promise<void> {
  const steps = Math.ceil(budget / schedule.tokensPerStep);
  const started = performance.now();
  let batch: { datum: Datum; mass: number }[] = [];
  let size = 0;
  let step = 0;
  let seen = 0;
  // More than enough; the loop ends by its steps. A conversation has a little under 100 tokens.
  for await (const messages of corpus({ seed: seed + 1, conversations: Math.ceil(budget / 50) })) {
    const one = datumOf(codec, messages);
    batch.push(one);
    size += one.datum.tokens.length;
    if (size < schedule.tokensPerStep) continue;
    const mass = batch.reduce((sum, { mass }) => sum + mass, 0);
    const data = batch.map(({ datum }) => ({
      ...datum,
      weights: Array.from(datum.weights!, (weight) => weight / mass),
    }));
    const { loss } = await engine.forwardBackward('base', data, { kind: 'cross_entropy' });
    const { gradNorm } = await engine.optimStep('base', {
      learningRate: learningRate(step, steps),
      weightDecay: schedule.weightDecay,
      gradClipNorm: 1,
    });
    seen += size;
    step++;
    if (step % 20 === 0 || step === steps) {
      const seconds = (performance.now() - started) / 1000;
      log(
        `step ${step}/${steps}  loss ${loss.toFixed(3)}  gradient ${gradNorm?.toFixed(2)}  ${Math.round(seen / seconds)} tokens/s  ${Math.round(seconds)} s`,
      );
    }
    if (step === steps) return;
    batch = [];
    size = 0;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      folder: { type: 'string', default: fileURLToPath(new URL('model', import.meta.url)) },
      tokens: { type: 'string', default: '5500000' },
      seed: { type: 'string', default: '1' },
    },
  });
  await trainBase({
    folder: values.folder,
    tokens: Number(values.tokens),
    seed: Number(values.seed),
    log: (line) => console.log(line),
  });
}
