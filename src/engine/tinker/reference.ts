/**
 * A checkpoint that lies at a server: a folder like any other to the rest of Pawl, that holds `tinker.json` with the reference by which
 * the server knows it, and whatever else was taken from there (the adapter itself, where it is to be served). It is written as
 * every checkpoint is: all at once.
 */
import { open, readdir, readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { EngineError } from '../../errors.ts';
import { readOneVersion, replaceFolder } from '../atomic-folder.ts';
import { tinkerPath } from './wire.ts';

const referenceFile = 'tinker.json';

const schema = z.strictObject({
  /** Of the training state at the server. */
  path: tinkerPath,
  /** The server and its model; references mean nothing elsewhere. */
  url: z.string().max(4096),
  baseModel: z.string().max(4096),
  rank: z.int().min(1).max(65_536),
  /** Steps that the weights have behind them. */
  version: z.int().nonnegative(),
  /** Whether training goes on with the optimizer's state, which is then beside the weights. */
  optimizer: z.boolean(),
});

export type Reference = Readonly<z.output<typeof schema>>;

/** The reference in a folder; null where it holds something else. Throws where there is no folder. */
export async function readReference(folder: string): Promise<Reference | null> {
  const at = resolve(folder);
  return readOneVersion(at, async (dir) => {
    if (!(await readdir(dir)).includes(referenceFile)) return null;
    const file = join(dir, referenceFile);
    const { size } = await stat(file);
    if (size > 65_536) throw new EngineError(`${file} has ${size} bytes, which is no reference to a checkpoint.`);
    let json: unknown;
    try {
      json = JSON.parse(await readFile(file, 'utf8'));
    } catch (cause) {
      throw new EngineError(`${file} is not JSON: ${(cause as Error).message}.`, { cause });
    }
    const parsed = schema.safeParse(json);
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    throw new EngineError(`${file} is no reference to a checkpoint: ${issue!.path.join('.')}: ${issue!.message}.`);
  });
}

const isCheckpoint = (names: readonly string[]) =>
  [referenceFile, 'config.json', 'adapter_config.json'].some((name) => names.includes(name));

export async function writeReference(
  folder: string,
  reference: Reference,
  files: ReadonlyMap<string, Uint8Array> = new Map(),
): Promise<void> {
  const text = `${JSON.stringify(reference, null, 2)}\n`;
  await replaceFolder(resolve(folder), isCheckpoint, async (dir) => {
    for (const [name, bytes] of [...files, [referenceFile, Buffer.from(text)] as const]) {
      const handle = await open(join(dir, name), 'wx');
      try {
        await handle.writeFile(bytes);
        await handle.sync();
      } finally {
        await handle.close();
      }
    }
  });
}
