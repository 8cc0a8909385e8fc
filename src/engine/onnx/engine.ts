/**
 * The embedded engine: the Engine interface over ONNX Runtime on this machine. Keeps the models by name, queues the
 * training calls of each, gives every sampler a frozen copy of the weights, and keeps the memory of it all within a bound.
 * What a model computes is model.ts; training is trainer.ts; sampling is sampler.ts; files are ../checkpoint.ts.
 */
import { availableParallelism } from 'node:os';
import { EngineError } from '../../errors.ts';
import { checkTensors } from '../check-checkpoint.ts';
import {
  type Checkpoint,
  type CheckpointSummary,
  inspectCheckpoint,
  readCheckpoint,
  writeCheckpoint,
} from '../checkpoint.ts';
import type { Engine, LoraSpec, ModelInfo } from '../engine.ts';
import type { Tensors } from '../safetensors.ts';
import { endTokens } from '../stop-tokens.ts';
import { type TextStream, tokenizerFromFiles } from '../tokenizer.ts';
import { type ModelConfig, parameterCount, parameterShapes, parseModelConfig } from './config.ts';
import { adapterShape, adapterShapes } from './lora.ts';
import { inUnits, leastBytes, type MemoryNeed, machineMemory, memoryNeed, modelBytes, needInWords } from './memory.ts';
import { createSampler, DEFAULT_CACHE_BYTES, type Sampler } from './sampler.ts';
import { type OptimizerState, Trainer } from './trainer.ts';
import { isIdle, type Weights } from './weights.ts';

export type OnnxEngineOptions = {
  /** Threads of one computation. Results are repeatable for a fixed number. */
  readonly threads?: number; // the machine's cores
  /** Most memory for all models together, in bytes. */
  readonly memory?: number; // three quarters of the machine's, or of the container's
  /** Attempts one model decodes at a time. */
  readonly slots?: number; // the sampler's default
};

/** What a model carries along unchanged from its folder to the next. */
type Origin = Pick<Checkpoint, 'folder' | 'config' | 'files'> & { readonly base?: string };

/** A sampler of one version of the weights, and who uses it. */
type Sampling = {
  readonly sampler: Promise<Sampler>;
  readonly version: number;
  /** Set when `sampler` is there. */
  ready: Sampler | undefined;
  users: number;
  retired: boolean;
};

type Entry = {
  readonly name: string;
  readonly config: ModelConfig;
  readonly origin: Origin;
  readonly textStream: (() => TextStream) | undefined;
  readonly model:
    | { readonly kind: 'trainable'; readonly trainer: Trainer }
    | { readonly kind: 'snapshot'; readonly weights: Weights; readonly version: number };
  /** The last training call; the next begins when it has ended, well or not. */
  turn: Promise<unknown>;
  /** The last step: sampling waits for it and for nothing else, so answers do not wait for gradients. */
  stepped: Promise<unknown>;
  sampling: Sampling | undefined;
};

export function createOnnxEngine(options: OnnxEngineOptions = {}): Engine {
  const threads = options.threads ?? availableParallelism();
  const memory = options.memory ?? Math.floor(0.75 * machineMemory());
  const entries = new Map<string, Entry>();
  /** Names being loaded, with the bytes they will take. */
  const pending = new Map<string, number>();
  let closed = false;

  function entryOf(name: string): Entry {
    const entry = entries.get(name);
    if (entry !== undefined) return entry;
    const known = [...entries.keys()].join(', ') || 'none';
    throw new EngineError(`There is no model called ${name}; loaded are: ${known}.`);
  }

  function trainerOf(entry: Entry): Trainer {
    if (entry.model.kind === 'trainable') return entry.model.trainer;
    throw new EngineError(
      `${entry.name} is a snapshot: it can be sampled and saved, not trained. Load it to train it.`,
    );
  }

  /** Runs `work` when the model's earlier training calls have ended. */
  function inTurn<T>(entry: Entry, work: () => Promise<T> | T): Promise<T> {
    const result = entry.turn.then(work);
    entry.turn = result.catch(() => {});
    return result;
  }

  function taken(): number {
    let bytes = 0;
    for (const entry of entries.values()) bytes += heldBytes(entry);
    for (const other of pending.values()) bytes += other;
    return bytes;
  }

  /** Claims a name and memory until `work` is done; both are given back if it fails. */
  async function claiming<T>(name: string, { what, need, advice }: Claim, work: () => Promise<T>): Promise<T> {
    if (closed) throw new EngineError('The engine is closed.');
    if (entries.has(name) || pending.has(name))
      throw new EngineError(`A model called ${name} is loaded already; unload it first, or use another name.`);
    const bytes = leastBytes(need);
    if (taken() + bytes > memory)
      throw new EngineError(
        `${what} needs ${inUnits(bytes)}; of the ${inUnits(memory)} this engine may use, ${inUnits(taken())} are taken. ` +
          `It is made of ${needInWords(need)}. ${advice}`,
      );
    pending.set(name, bytes);
    try {
      return await work();
    } finally {
      pending.delete(name);
    }
  }

  /** Bytes a new sampler of this model may use for keys and values: what nobody else has, and at least what was claimed. */
  function cacheRoom(entry: Entry): number {
    const { cache } = needOf(entry);
    return Math.min(DEFAULT_CACHE_BYTES, cache + Math.max(0, memory - taken()));
  }

  function acquireSampler(entry: Entry): Sampling {
    const { model } = entry;
    const version = model.kind === 'trainable' ? model.trainer.version : model.version;
    if (entry.sampling?.version !== version || entry.sampling.retired) {
      retire(entry);
      const cacheBytes = cacheRoom(entry);
      const weights = model.kind === 'trainable' ? model.trainer.merged() : model.weights;
      const sampler = createSampler(entry.config, weights, {
        threads,
        version,
        cacheBytes,
        ...(entry.textStream === undefined ? {} : { textStream: entry.textStream }),
        ...(options.slots === undefined ? {} : { slots: options.slots }),
      });
      const sampling: Sampling = { sampler, version, ready: undefined, users: 0, retired: false };
      // A sampler that cannot be made tells its caller; the next caller tries again.
      const fail = () => {
        sampling.retired = true;
      };
      sampler.then((made) => {
        sampling.ready = made;
      }, fail);
      entry.sampling = sampling;
    }
    entry.sampling.users++;
    return entry.sampling;
  }

  /** Closes a sampler nobody uses; one in use is closed by its last user. */
  function retire(entry: Entry): void {
    const { sampling } = entry;
    entry.sampling = undefined;
    if (sampling === undefined) return;
    sampling.retired = true;
    if (sampling.users === 0) void closeSampler(sampling);
  }

  async function drop(entry: Entry): Promise<void> {
    entries.delete(entry.name);
    const { sampling } = entry;
    retire(entry);
    if (sampling !== undefined) await closeSampler(sampling);
    await inTurn(entry, () => (entry.model.kind === 'trainable' ? entry.model.trainer.close() : undefined));
  }

  return {
    traits: { computesHere: true, overlaps: true, isInside: true },

    async load(name, folder, { lora } = {}) {
      const summary = await inspectCheckpoint(folder);
      const config = parseModelConfig(summary.config);
      checkTensors(folder, config, summary.tensors);
      const spec = lora ?? summary.adapter;
      const need = memoryNeed(config, trainableCount(config, spec));
      const adapted = leastBytes(memoryNeed(config, trainableCount(config, ADAPTER)));
      const claim = {
        what: `${folder} (${summary.parameters} parameters)`,
        need,
        advice:
          spec === undefined && taken() + adapted <= memory
            ? `With an adapter (lora) beside frozen weights it needs ${inUnits(adapted)}.`
            : 'Unload a model, take a smaller one, or let the engine use more memory.',
      };
      return await claiming(name, claim, async () => {
        const entry = await loadEntry(name, folder, summary, threads, memory, lora);
        if (closed) throw new EngineError('The engine was closed while it loaded a model.');
        entries.set(name, entry);
        return infoOf(entry);
      });
    },

    async models() {
      return [...entries.values()].map(infoOf);
    },

    async forward(model, data) {
      const entry = entryOf(model);
      const trainer = trainerOf(entry);
      return await inTurn(entry, () => trainer.forward(data));
    },

    async forwardBackward(model, data, loss) {
      const entry = entryOf(model);
      const trainer = trainerOf(entry);
      return await inTurn(entry, () => trainer.forwardBackward(data, loss));
    },

    async optimStep(model, adam) {
      const entry = entryOf(model);
      const trainer = trainerOf(entry);
      const step = inTurn(entry, () => trainer.optimStep(adam));
      entry.stepped = entry.turn;
      return await step;
    },

    async sample(model, prompts, params, sampleOptions = {}) {
      const entry = entryOf(model);
      await entry.stepped;
      if (entryOf(model) !== entry)
        throw new EngineError(`${model} was replaced by another model before it could answer.`);
      const sampling = acquireSampler(entry);
      try {
        const sampler = await sampling.sampler;
        return await sampler.sample(prompts, params, sampleOptions);
      } finally {
        sampling.users--;
        if (sampling.retired && sampling.users === 0) void closeSampler(sampling);
      }
    },

    async save(model, folder, { optimizer = true } = {}) {
      const entry = entryOf(model);
      await inTurn(entry, () => writeCheckpoint(folder, checkpointOf(entry, optimizer)));
    },

    async snapshot(model, name) {
      const entry = entryOf(model);
      const trainer = trainerOf(entry);
      return await inTurn(entry, () =>
        claiming(name, snapshotClaim(entry), async () => {
          const frozen = { kind: 'snapshot', weights: trainer.merged(), version: trainer.version } as const;
          const { config, origin, textStream } = entry;
          const made = {
            name,
            config,
            origin,
            textStream,
            model: frozen,
            turn: Promise.resolve(),
            stepped: Promise.resolve(),
            sampling: undefined,
          };
          entries.set(name, made);
          return infoOf(made);
        }),
      );
    },

    async unload(name) {
      await drop(entryOf(name));
    },

    async close() {
      closed = true;
      await Promise.all([...entries.values()].map(drop));
    },
  };
}

/** What is asked for when a model is to be held. */
type Claim = { readonly what: string; readonly need: MemoryNeed; readonly advice: string };

const snapshotClaim = ({ name, config }: Entry): Claim => ({
  what: `A snapshot of ${name}`,
  need: memoryNeed(config, 0),
  advice: 'Unload a model, or let the engine use more memory.',
});

/** The adapter that advice is given for. */
const ADAPTER: LoraSpec = { rank: 16, alpha: 32 };

async function closeSampler(sampling: Sampling): Promise<void> {
  // A sampler that could not be made has told its users already, and there is nothing to close.
  const sampler = await sampling.sampler.catch(() => undefined);
  await sampler?.close();
}

async function loadEntry(
  name: string,
  folder: string,
  { adapter }: CheckpointSummary,
  threads: number,
  memory: number,
  lora: LoraSpec | undefined,
): Promise<Entry> {
  if (adapter !== undefined && lora !== undefined)
    throw new EngineError(
      `${folder} holds an adapter of its own; load its base to start another, or load it without lora.`,
    );
  const found = await readCheckpoint(folder);
  const config = { ...parseModelConfig(found.config), eos_token_ids: endTokens(found.config, found.files) };
  const needed = new Map([...found.weights].filter(([tensor]) => !isIdle(config, tensor)));
  const weights = plainTensors(needed, parameterShapes(config));
  const own = found.adapter;
  const ownSpec = own === undefined ? undefined : { rank: own.rank, alpha: own.alpha, targets: own.targets };
  const spec = lora ?? ownSpec;
  // Moments belong to the weights they were made with: a fresh adapter over a trained base starts its own.
  const optimizer = lora === undefined ? found.optimizer : undefined;
  const trainer = new Trainer(
    {
      config,
      weights,
      ...(spec === undefined
        ? {}
        : {
            lora: {
              spec,
              ...(own === undefined
                ? {}
                : { weights: plainTensors(own.weights, adapterShapes(config, adapterShape(spec))) }),
            },
          }),
      ...(optimizer === undefined ? {} : { optimizer: optimizerState(optimizer) }),
    },
    { threads, memory },
  );
  const base = found.base ?? (lora === undefined ? undefined : found.folder);
  const tokenizer = tokenizerFromFiles(found.files);
  return {
    name,
    config,
    origin: { folder: found.folder, config: found.config, files: found.files, ...(base === undefined ? {} : { base }) },
    textStream: tokenizer && (() => tokenizer.stream({ skipSpecial: false })),
    model: { kind: 'trainable', trainer },
    turn: Promise.resolve(),
    stepped: Promise.resolve(),
    sampling: undefined,
  };
}

/** Shapes are checked here, where they are still known; from here on tensors are plain arrays. */
function plainTensors(tensors: Tensors, shapes: ReadonlyMap<string, readonly number[]>): Weights {
  for (const [name, { shape }] of tensors) {
    const wanted = shapes.get(name);
    if (wanted !== undefined && String(wanted) !== String(shape))
      throw new EngineError(`Tensor ${name} has the shape [${shape}]; the config needs [${wanted}].`);
  }
  return new Map([...tensors].map(([name, { data }]) => [name, data]));
}

function shapedTensors(
  weights: ReadonlyMap<string, Float32Array>,
  shapes: ReadonlyMap<string, readonly number[]>,
): Tensors {
  return new Map([...weights].map(([name, data]) => [name, { shape: shapes.get(name)!, data }]));
}

function optimizerState({ step, m, v, metadata }: NonNullable<Checkpoint['optimizer']>): OptimizerState {
  const data = (tensors: Tensors) => new Map([...tensors].map(([name, tensor]) => [name, tensor.data]));
  const version = Number(metadata.version ?? step);
  return {
    steps: step,
    version: Number.isSafeInteger(version) && version >= 0 ? version : step,
    m: data(m),
    v: data(v),
  };
}

function checkpointOf({ config, origin, model }: Entry, withOptimizer: boolean) {
  const shapes = parameterShapes(config);
  const common = { config: origin.config, files: origin.files };
  if (model.kind === 'snapshot') return { ...common, weights: shapedTensors(model.weights, shapes) };
  const { trainer } = model;
  const { base, adapter } = trainer.weights();
  const trainable = trainer.lora === undefined ? shapes : adapterShapes(config, adapterShape(trainer.lora));
  const { steps, version, m, v } = trainer.optimizer();
  const optimizer = {
    step: steps,
    m: shapedTensors(m, trainable),
    v: shapedTensors(v, trainable),
    metadata: { version: String(version) },
  };
  return {
    ...common,
    ...(withOptimizer ? { optimizer } : {}),
    ...(adapter === undefined || trainer.lora === undefined
      ? { weights: shapedTensors(base, shapes) }
      : {
          adapter: {
            rank: trainer.lora.rank,
            alpha: trainer.lora.alpha,
            targets: adapterShape(trainer.lora).targets,
            base: origin.base!,
            weights: shapedTensors(adapter, trainable),
          },
        }),
  };
}

function trainableCount(config: ModelConfig, lora: LoraSpec | undefined): number {
  if (lora === undefined) return parameterCount(config);
  let count = 0;
  for (const shape of adapterShapes(config, adapterShape(lora)).values()) count += shape.reduce((a, b) => a * b, 1);
  return count;
}

const needOf = ({ config, model }: Entry): MemoryNeed =>
  memoryNeed(config, model.kind === 'snapshot' ? 0 : model.trainer.trainableParameters);

/** What a model may come to hold: gradient, moments and the least of a sampler are counted from the start. */
function heldBytes(entry: Entry): number {
  const need = needOf(entry);
  return Math.max(leastBytes(need), need.weights + need.training + (entry.sampling?.ready?.bytes ?? 0));
}

function infoOf(entry: Entry): ModelInfo {
  const { name, config, model, sampling } = entry;
  const sampler = sampling?.ready?.bytes ?? 0;
  const common = { name, vocabulary: config.vocab_size, context: config.max_position_embeddings };
  if (model.kind === 'snapshot') {
    const parameters = parameterCount(config);
    const { version } = model;
    return {
      ...common,
      kind: 'snapshot',
      parameters,
      trainableParameters: 0,
      version,
      bytes: modelBytes(config, 0) + sampler,
    };
  }
  const { parameters, trainableParameters, version, lora } = model.trainer;
  const bytes = model.trainer.bytes + sampler;
  const info = { ...common, kind: 'trainable', parameters, trainableParameters, version, bytes } as const;
  return lora === undefined ? info : { ...info, lora };
}
