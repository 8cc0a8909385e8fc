/**
 * A checkpoint: a folder in the Hugging Face layout. `config.json` + `model.safetensors` (or shards with an index), or a
 * PEFT adapter (`adapter_config.json` + `adapter_model.safetensors`) over a base folder; tokenizer and chat template
 * files; optimizer state in `optimizer.safetensors`. This file reads and writes such folders; it runs no model.
 *
 * Writing replaces the whole folder at once, reading sees one version of it (atomic-folder.ts).
 */
import { open, readdir, stat } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve } from 'node:path';
import { EngineError } from '../errors.ts';
import { readOneVersion, replaceFolder } from './atomic-folder.ts';
import { addLowRank } from './low-rank.ts';
import {
  openSafetensors,
  type SafetensorsFile,
  type Tensors,
  type WriteDtype,
  writeSafetensors,
} from './safetensors.ts';

export type Json = Readonly<Record<string, unknown>>;

/** PEFT's adapter: W + (alpha / rank) · B·A for every adapted linear layer. */
export type Adapter = {
  readonly rank: number;
  readonly alpha: number;
  /** Names of the adapted layers, e.g. q_proj, v_proj. */
  readonly targets: readonly string[];
  /**
   * `<module>.lora_A.weight` [rank, in] and `<module>.lora_B.weight` [out, rank], the module named as in the base model,
   * e.g. `model.layers.0.self_attn.q_proj.lora_A.weight`.
   */
  readonly weights: Tensors;
};

/** What resuming needs to land on the same curve: AdamW's moments by parameter, and the counts. */
export type OptimizerState = {
  readonly step: number;
  readonly m: Tensors;
  readonly v: Tensors;
  /** Anything else the engine must find again: versions, seeds. */
  readonly metadata: Readonly<Record<string, string>>;
};

export type Checkpoint = {
  /** Where it was asked for; absolute. */
  readonly folder: string;
  /** The model's config.json; of the base where the folder holds an adapter. */
  readonly config: Json;
  /** The full weights under Hugging Face names; of the base where the folder holds an adapter. */
  readonly weights: Tensors;
  readonly adapter?: Adapter;
  /** The folder of the weights under the adapter. */
  readonly base?: string;
  readonly optimizer?: OptimizerState;
  /** Tokenizer, chat template, generation config: carried along byte by byte. */
  readonly files: ReadonlyMap<string, Uint8Array>;
};

const sideFiles = [
  'tokenizer.json',
  'tokenizer_config.json',
  'special_tokens_map.json',
  'added_tokens.json',
  'vocab.json',
  'merges.txt',
  'chat_template.jinja',
  'generation_config.json',
];
const maxJsonBytes = 4 * 2 ** 20;
const maxSideFileBytes = 128 * 2 ** 20;
/** Replacing means that what is there goes away: only a checkpoint may be in the way. */
const isCheckpoint = (names: readonly string[]) =>
  names.includes('config.json') || names.includes('adapter_config.json');
const adapterPrefix = 'base_model.model.';

/** Reads a whole checkpoint, checked: no NaN or infinity in any weight, one version of every file. */
export async function readCheckpoint(
  folder: string,
  options: { readonly base?: string; readonly optimizer?: boolean } = {},
): Promise<Checkpoint> {
  const at = resolve(folder);
  return readOneVersion(at, async (dir) => {
    const names = new Set(await readdir(dir));
    const files = await readSideFiles(dir, names);
    const optimizer =
      options.optimizer !== false && names.has('optimizer.safetensors')
        ? { optimizer: await readOptimizer(join(dir, 'optimizer.safetensors')) }
        : {};
    if (!names.has('adapter_config.json')) {
      const config = await readJson(join(dir, 'config.json'));
      return { folder: at, config, weights: await readWeights(dir), files, ...optimizer };
    }
    const { base: named, ...settings } = parseAdapterConfig(
      join(dir, 'adapter_config.json'),
      await readJson(join(dir, 'adapter_config.json')),
    );
    const weights: Tensors = new Map();
    for (const [name, tensor] of await readFinite(join(dir, 'adapter_model.safetensors'))) {
      weights.set(name.startsWith(adapterPrefix) ? name.slice(adapterPrefix.length) : name, tensor);
    }
    const base = options.base === undefined ? resolve(at, named) : resolve(options.base);
    if (base === at) throw new EngineError(`${at} holds an adapter that names itself as its base model.`);
    const under = await readCheckpoint(base, { optimizer: false }).catch((cause: Error) => {
      throw new EngineError(`The base model of the adapter in ${at} cannot be read. ${cause.message}`, { cause });
    });
    if (under.adapter)
      throw new EngineError(`${at} is an adapter over ${base}, which is itself an adapter; merge that first.`);
    return {
      folder: at,
      config: under.config,
      weights: under.weights,
      adapter: { ...settings, weights },
      base,
      files: new Map([...under.files, ...files]),
      ...optimizer,
    };
  });
}

export type CheckpointWrite = {
  readonly config: Json;
  /** The full weights, or with `adapter` the adapter's alone. */
  readonly weights?: Tensors;
  readonly adapter?: Adapter & { readonly base: string };
  readonly optimizer?: OptimizerState;
  readonly files?: ReadonlyMap<string, Uint8Array>;
  readonly dtype?: WriteDtype;
};

/** Writes a checkpoint so that `folder` is at every moment the old one or the new one, complete. */
export async function writeCheckpoint(folder: string, checkpoint: CheckpointWrite): Promise<void> {
  const at = resolve(folder);
  const { weights, adapter, optimizer } = checkpoint;
  if ((weights === undefined) === (adapter === undefined)) {
    throw new Error('A checkpoint holds either full weights or an adapter; pass one of the two.');
  }
  refuseNonFinite(at, weights ?? adapter!.weights);
  if (optimizer) {
    refuseNonFinite(at, optimizer.m, 'optimizer moment m of ');
    refuseNonFinite(at, optimizer.v, 'optimizer moment v of ');
  }
  await replaceFolder(at, isCheckpoint, async (dir) => {
    const dtype = checkpoint.dtype ?? 'F32';
    for (const [name, bytes] of checkpoint.files ?? []) await writeFileSynced(join(dir, plainName(at, name)), bytes);
    if (adapter) {
      const prefixed: Tensors = new Map([...adapter.weights].map(([name, tensor]) => [adapterPrefix + name, tensor]));
      await writeSafetensors(join(dir, 'adapter_model.safetensors'), prefixed, { dtype });
      await writeJson(join(dir, 'adapter_config.json'), adapterConfig(at, adapter));
    } else {
      await writeSafetensors(join(dir, 'model.safetensors'), weights!, { dtype });
      const name = dtype === 'BF16' ? 'bfloat16' : 'float32';
      // Older files say torch_dtype; whichever is there must not contradict the weights.
      const older = 'torch_dtype' in checkpoint.config ? { torch_dtype: name } : {};
      await writeJson(join(dir, 'config.json'), { ...checkpoint.config, ...older, dtype: name });
    }
    if (optimizer) {
      const moments: Tensors = new Map();
      for (const [name, tensor] of optimizer.m) moments.set(`m.${name}`, tensor);
      for (const [name, tensor] of optimizer.v) moments.set(`v.${name}`, tensor);
      // Always in full precision: a rounded moment would leave the curve.
      await writeSafetensors(join(dir, 'optimizer.safetensors'), moments, {
        metadata: { ...optimizer.metadata, step: String(optimizer.step) },
      });
    }
  });
}

// ---- Adapters and optimizer state ----------------------------------------------------------------------------------

function parseAdapterConfig(file: string, json: Json): Omit<Adapter, 'weights'> & { base: string } {
  const { r, lora_alpha: alpha, target_modules: targets, base_model_name_or_path: base, peft_type: kind } = json;
  const refuse = (why: string) => new EngineError(`${file} is not an adapter this engine can apply: ${why}.`);
  if (kind !== undefined && kind !== 'LORA') throw refuse(`peft_type is ${JSON.stringify(kind)}, not "LORA"`);
  if (!Number.isSafeInteger(r) || (r as number) < 1) throw refuse(`the rank r is ${JSON.stringify(r)}`);
  if (typeof alpha !== 'number' || !Number.isFinite(alpha)) throw refuse(`lora_alpha is ${JSON.stringify(alpha)}`);
  if (!Array.isArray(targets) || !targets.every((name) => typeof name === 'string')) {
    throw refuse(`target_modules is ${JSON.stringify(targets)?.slice(0, 80)}, not a list of names`);
  }
  if (typeof base !== 'string' || base === '') throw refuse('it names no base_model_name_or_path');
  // These change what the adapter computes; ignoring them would give a different model in silence.
  for (const field of [
    'use_rslora',
    'use_dora',
    'fan_in_fan_out',
    'modules_to_save',
    'rank_pattern',
    'alpha_pattern',
  ]) {
    const value = json[field];
    const empty = value === undefined || value === null || value === false || Object.keys(Object(value)).length === 0;
    if (!empty || value === true) throw refuse(`it sets ${field}, which is not supported`);
  }
  if (json.bias !== undefined && json.bias !== 'none') throw refuse(`bias is ${JSON.stringify(json.bias)}, not "none"`);
  return { rank: r as number, alpha, targets: targets as string[], base };
}

function adapterConfig(folder: string, adapter: Adapter & { readonly base: string }): Json {
  // A base beside the adapter is named relatively, so that the two can be moved together.
  const base = resolve(adapter.base);
  const near = relative(folder, base);
  return {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: isAbsolute(near) || near.startsWith(join('..', '..')) ? base : near,
    r: adapter.rank,
    lora_alpha: adapter.alpha,
    target_modules: adapter.targets,
    lora_dropout: 0,
    bias: 'none',
    fan_in_fan_out: false,
    inference_mode: true,
  };
}

async function readOptimizer(path: string): Promise<OptimizerState> {
  const file = await openSafetensors(path);
  try {
    const { step: stepText, ...metadata } = Object.fromEntries(file.metadata);
    const step = Number(stepText);
    if (!Number.isSafeInteger(step) || step < 0) {
      throw new EngineError(`${path} does not say how many steps were taken (its metadata has step ${stepText}).`);
    }
    const m: Tensors = new Map();
    const v: Tensors = new Map();
    for (const name of file.tensors.keys()) {
      const target = name.startsWith('m.') ? m : name.startsWith('v.') ? v : undefined;
      if (!target) throw new EngineError(`${path} holds "${name}", which is no moment: names begin with m. or v.`);
      target.set(name.slice(2), await file.read(name));
    }
    refuseNonFinite(path, m, 'optimizer moment m of ');
    refuseNonFinite(path, v, 'optimizer moment v of ');
    return { step, m, v, metadata };
  } finally {
    await file.close();
  }
}

/** W + (alpha / rank) · B·A: the full weights that answer as the base with its adapter does. */
export function mergeAdapter(weights: Tensors, adapter: Adapter): Tensors {
  const merged: Tensors = new Map(weights);
  const scale = adapter.alpha / adapter.rank;
  const modules = new Set([...adapter.weights.keys()].map((name) => name.replace(/\.lora_[AB]\.weight$/, '')));
  for (const module of modules) {
    const a = adapter.weights.get(`${module}.lora_A.weight`);
    const b = adapter.weights.get(`${module}.lora_B.weight`);
    const full = weights.get(`${module}.weight`);
    if (!a || !b) throw new EngineError(`The adapter lacks lora_A or lora_B of ${module}.`);
    if (!full) throw new EngineError(`The adapter adapts ${module}, which the base model does not have.`);
    const [rank, inputs] = a.shape as [number, number];
    const [outputs] = b.shape as [number];
    if (b.shape[1] !== rank || full.shape[0] !== outputs || full.shape[1] !== inputs || rank !== adapter.rank) {
      throw new EngineError(
        `The adapter of ${module} has lora_A [${a.shape}] and lora_B [${b.shape}] of rank ${adapter.rank}, which do not fit the weight [${full.shape}].`,
      );
    }
    const data = addLowRank(full.data, { a: a.data, b: b.data, rank, scale });
    merged.set(`${module}.weight`, { shape: full.shape, data });
  }
  return merged;
}

// ---- Weights -------------------------------------------------------------------------------------------------------

async function readWeights(dir: string): Promise<Tensors> {
  const weights: Tensors = new Map();
  await eachShard(dir, async (file, names) => {
    for (const name of names) {
      if (weights.has(name)) throw new EngineError(`${file.path} holds "${name}" a second time.`);
      const tensor = await file.read(name);
      refuseNonFinite(file.path, new Map([[name, tensor]]));
      weights.set(name, tensor);
    }
  });
  return weights;
}

async function readFinite(path: string): Promise<Tensors> {
  const file = await openSafetensors(path);
  try {
    const tensors: Tensors = new Map();
    for (const name of file.tensors.keys()) tensors.set(name, await file.read(name));
    refuseNonFinite(path, tensors);
    return tensors;
  } finally {
    await file.close();
  }
}

/** The weight files of a folder one after the other: model.safetensors, or the shards that the index names. */
async function eachShard(
  dir: string,
  visit: (file: SafetensorsFile, names: readonly string[]) => Promise<void>,
): Promise<void> {
  const names = new Set(await readdir(dir));
  const shards = new Map<string, string[] | undefined>();
  if (names.has('model.safetensors')) {
    shards.set('model.safetensors', undefined);
  } else if (names.has('model.safetensors.index.json')) {
    const index = join(dir, 'model.safetensors.index.json');
    const { weight_map: map } = await readJson(index);
    if (typeof map !== 'object' || map === null) throw new EngineError(`${index} has no weight_map.`);
    for (const [name, shard] of Object.entries(map)) {
      if (typeof shard !== 'string') throw new EngineError(`${index} maps "${name}" to something that is not a file.`);
      const list = shards.get(plainName(index, shard));
      if (list) list.push(name);
      else shards.set(shard, [name]);
    }
  } else {
    throw new EngineError(`${dir} holds neither model.safetensors nor model.safetensors.index.json.`);
  }
  for (const [shard, wanted] of shards) {
    const file = await openSafetensors(join(dir, shard));
    try {
      for (const name of wanted ?? []) {
        if (!file.tensors.has(name)) {
          throw new EngineError(
            `model.safetensors.index.json says that ${file.path} holds "${name}", but it does not.`,
          );
        }
      }
      await visit(file, wanted ?? [...file.tensors.keys()]);
    } finally {
      await file.close();
    }
  }
}

function refuseNonFinite(where: string, tensors: Tensors, what = ''): void {
  for (const [name, { data }] of tensors) {
    for (let i = 0; i < data.length; i++) {
      const value = data[i]!;
      // A number minus itself is 0 unless it is NaN or infinite; one comparison covers both.
      if (value - value !== 0) throw new EngineError(`${where}: ${what}${name} holds ${value} at element ${i}.`);
    }
  }
}

// ---- What a folder holds, from headers alone -----------------------------------------------------------------------

export type CheckpointSummary = {
  readonly folder: string;
  /** The model's config; of the base where the folder holds an adapter. */
  readonly config: Json;
  /** Elements in the weight files: of the base where the folder holds an adapter. */
  readonly parameters: number;
  /** Bytes of the weight files. */
  readonly weightBytes: number;
  readonly dtypes: readonly string[];
  readonly tensors: ReadonlyMap<string, readonly number[]>;
  readonly adapter?: {
    readonly rank: number;
    readonly alpha: number;
    readonly targets: readonly string[];
    readonly parameters: number;
    readonly base: string;
  };
  readonly optimizerBytes: number;
  readonly files: readonly string[];
};

/** Reads headers and settings only: cheap for a checkpoint of any size, and nothing of the weights is loaded. */
export async function inspectCheckpoint(
  folder: string,
  options: { readonly base?: string } = {},
): Promise<CheckpointSummary> {
  const at = resolve(folder);
  return readOneVersion(at, async (dir) => {
    const names = await readdir(dir);
    const optimizerBytes = names.includes('optimizer.safetensors')
      ? (await stat(join(dir, 'optimizer.safetensors'))).size
      : 0;
    const files = names.filter((name) => sideFiles.includes(name)).sort();
    if (names.includes('adapter_config.json')) {
      const file = join(dir, 'adapter_config.json');
      const { base: named, ...settings } = parseAdapterConfig(file, await readJson(file));
      const base = options.base === undefined ? resolve(at, named) : resolve(options.base);
      if (base === at) throw new EngineError(`${at} holds an adapter that names itself as its base model.`);
      const under = await inspectCheckpoint(base);
      const tensors = await openSafetensors(join(dir, 'adapter_model.safetensors'));
      await tensors.close();
      const parameters = [...tensors.tensors.values()].reduce((sum, { elements }) => sum + elements, 0);
      return {
        ...under,
        folder: at,
        adapter: { ...settings, base, parameters },
        optimizerBytes,
        files: [...new Set([...under.files, ...files])].sort(),
      };
    }
    const config = await readJson(join(dir, 'config.json'));
    const tensors = new Map<string, readonly number[]>();
    const dtypes = new Set<string>();
    let parameters = 0;
    let weightBytes = 0;
    await eachShard(dir, async (file, wanted) => {
      weightBytes += file.size;
      for (const name of wanted) {
        const entry = file.tensors.get(name)!;
        tensors.set(name, entry.shape);
        dtypes.add(entry.dtype);
        parameters += entry.elements;
      }
    });
    return { folder: at, config, parameters, weightBytes, dtypes: [...dtypes].sort(), tensors, optimizerBytes, files };
  });
}

/** The config.json of a folder, or of its base where it holds an adapter. Needs no weights beside it. */
export async function readModelConfig(folder: string): Promise<Json> {
  const at = resolve(folder);
  return readOneVersion(at, async (dir) => {
    if (!(await readdir(dir)).includes('adapter_config.json')) return readJson(join(dir, 'config.json'));
    const file = join(dir, 'adapter_config.json');
    const base = resolve(at, parseAdapterConfig(file, await readJson(file)).base);
    if (base === at) throw new EngineError(`${at} holds an adapter that names itself as its base model.`);
    return readModelConfig(base);
  });
}

/** The tokenizer, template and generation files of a folder, and of its base where it holds an adapter. */
export async function readModelFiles(folder: string): Promise<ReadonlyMap<string, Uint8Array>> {
  const at = resolve(folder);
  return readOneVersion(at, async (dir) => {
    const names = new Set(await readdir(dir));
    const files = await readSideFiles(dir, names);
    if (!names.has('adapter_config.json')) return files;
    const file = join(dir, 'adapter_config.json');
    const base = resolve(at, parseAdapterConfig(file, await readJson(file)).base);
    return base === at ? files : new Map([...(await readModelFiles(base)), ...files]);
  });
}

// ---- Files and folders ---------------------------------------------------------------------------------------------

async function readSideFiles(dir: string, names: ReadonlySet<string>): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  for (const name of sideFiles) {
    if (names.has(name)) files.set(name, await readCapped(join(dir, name), maxSideFileBytes));
  }
  return files;
}

async function readCapped(path: string, cap: number): Promise<Uint8Array> {
  const handle = await open(path, 'r').catch((cause: NodeJS.ErrnoException) => {
    throw new EngineError(`${path} cannot be opened: ${cause.code ?? cause.message}.`, { cause });
  });
  try {
    const { size } = await handle.stat();
    if (size > cap) throw new EngineError(`${path} has ${size} bytes; more than ${cap} are not read.`);
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

async function readJson(path: string): Promise<Json> {
  const text = Buffer.from(await readCapped(path, maxJsonBytes)).toString('utf8');
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new EngineError(`${path} is not JSON: ${(cause as Error).message}.`, { cause });
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw new EngineError(`${path} is not a JSON object.`);
  return json as Json;
}

const writeJson = (path: string, json: Json) =>
  writeFileSynced(path, Buffer.from(`${JSON.stringify(json, null, 2)}\n`));

async function writeFileSynced(path: string, bytes: Uint8Array): Promise<void> {
  const handle = await open(path, 'wx');
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function plainName(where: string, name: string): string {
  if (name === '' || name === '.' || name === '..' || /[/\\\0]/.test(name)) {
    throw new EngineError(
      `${where} names the file ${JSON.stringify(name.slice(0, 120))}; only files of its own folder are allowed.`,
    );
  }
  return name;
}
