/**
 * An adapter (LoRA, in PEFT's two files) as a release has it: kept as an artifact of its own, without its base, for the server that is
 * to load it has the base already. The name it gets there ends with the beginning of its hash, so whoever finds that name on a server
 * knows which weights answer to it.
 */
import { chmod, copyFile, mkdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { hashOf } from '../artifacts/artifact.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { readOneVersion } from '../engine/atomic-folder.ts';
import { copyMark } from '../engine/internal-mark.ts';
import { openSafetensors } from '../engine/safetensors.ts';
import { EngineError } from '../errors.ts';

const configFile = 'adapter_config.json';
const weightsFile = 'adapter_model.safetensors';
const files = [configFile, weightsFile] as const;

export const adapterName = (release: string, reference: string): string =>
  `${release}-${hashOf(reference).slice(0, 12)}`;

/** What an adapter is in any server; what a server cannot apply, it says itself when it is told to load it. */
const schema = z.looseObject({
  peft_type: z.literal('LORA').optional(),
  r: z.int().min(1).max(65_536),
  lora_alpha: z.number(),
});
const mostConfigBytes = 1024 * 1024;

/** Keeps the two files, checked, and returns the reference. The same adapter again gives the same. */
export const keepAdapter = (artifacts: Artifacts, folder: string): Promise<string> =>
  readOneVersion(folder, async (dir) => {
    await checkAdapter(dir);
    const draft = await artifacts.draft();
    try {
      await copyAdapter(dir, draft);
      await copyMark(dir, draft);
      return await artifacts.add({ kind: 'model' }, draft, { move: true });
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  });

export async function isAdapter(folder: string): Promise<boolean> {
  const sizes = await Promise.all(files.map((name) => sizeOf(join(folder, name))));
  return sizes.every((size) => size !== null);
}

/** Makes the folder, with the adapter and nothing else in it, readable for whoever runs the server. */
export async function copyAdapter(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const name of files) {
    await copyFile(join(from, name), join(to, name));
    await chmod(join(to, name), 0o644);
  }
}

/** Whether a folder holds the same adapter, as far as sizes tell. */
export async function holdsSame(a: string, b: string): Promise<boolean> {
  for (const name of files) {
    const size = await sizeOf(join(a, name));
    if (size === null || size !== (await sizeOf(join(b, name)))) return false;
  }
  return true;
}

const sizeOf = (path: string): Promise<number | null> =>
  stat(path).then(
    (found) => (found.isFile() ? found.size : null),
    () => null,
  );

async function checkAdapter(dir: string): Promise<void> {
  if (!(await isAdapter(dir)))
    throw new EngineError(`${dir} is no adapter in PEFT’s format: it needs ${configFile} and ${weightsFile}.`);
  const config = join(dir, configFile);
  if ((await sizeOf(config))! > mostConfigBytes)
    throw new EngineError(`${config} is larger than any adapter’s settings: more than ${mostConfigBytes} bytes.`);
  let json: unknown;
  try {
    json = JSON.parse(await readFile(config, 'utf8'));
  } catch (cause) {
    throw new EngineError(`${config} is not JSON: ${(cause as Error).message}.`, { cause });
  }
  const parsed = schema.safeParse(json);
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'all of it'}: ${message}`);
    throw new EngineError(`${config} is not that of a LoRA adapter: ${problems.join('; ')}.`);
  }
  await checkWeights(join(dir, weightsFile), parsed.data.r);
}

async function checkWeights(path: string, rank: number): Promise<void> {
  const file = await openSafetensors(path);
  try {
    const names = [...file.tensors.keys()];
    const lower = names.filter((name) => name.endsWith('.lora_A.weight'));
    if (lower.length === 0)
      throw new EngineError(`${path} holds no adapter: no tensor of it ends with .lora_A.weight.`);
    for (const name of lower) {
      const upper = name.replace(/A\.weight$/, 'B.weight');
      if (!file.tensors.has(upper)) throw new EngineError(`${path} holds ${name} and no ${upper}.`);
      const { shape } = file.tensors.get(name)!;
      if (shape.length !== 2 || shape[0]! > rank)
        throw new EngineError(`${name} in ${path} has the shape [${shape}], and the rank in ${configFile} is ${rank}.`);
    }
    for (const name of names)
      if (!(await file.read(name)).data.every(Number.isFinite))
        throw new EngineError(`${name} in ${path} holds NaN or infinity; the run that made it went wrong.`);
  } finally {
    await file.close();
  }
}
