/**
 * An adapter, fetched from the server that trained it: an archive with PEFT's two files. Its config is written anew, for the base
 * is where it lies here, and servers leave out which layers they adapted.
 */
import { gunzipSync } from 'node:zlib';
import { z } from 'zod';
import { EngineError } from '../../errors.ts';
import type { Dialect } from './dialects.ts';
import { jsonOf, parsed, refusalOf, type Transport } from './transport.ts';
import { adapterConfig, archiveAt } from './wire.ts';

const maxBytes = 2 ** 31;
/** How often an archive that comes damaged is saved anew. */
const saves = 6;

class DamagedArchive extends EngineError {}

/**
 * The adapter as `save` has it saved. Workers of SkyRL on Ray that share a disk all write the one archive at the same time, and what
 * comes of that fails its checksum now and then: then it is saved once more, under another name.
 */
export async function fetchAdapter(
  transport: Transport,
  save: () => Promise<string>,
  base: string,
  dialect: Dialect,
): Promise<ReadonlyMap<string, Uint8Array>> {
  for (let tries = 1; ; tries++) {
    try {
      return await readAdapter(transport, await save(), base, dialect);
    } catch (error) {
      if (!(error instanceof DamagedArchive) || tries === saves) throw error;
    }
  }
}
const config = 'adapter_config.json';
const weights = 'adapter_model.safetensors';

async function readAdapter(
  transport: Transport,
  path: string,
  base: string,
  dialect: Dialect,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const [, , run, kind, name] = path.split('/') as [string, string, string, string, string];
  // SkyRL's route takes the bare name.
  const checkpoint = dialect.leavesTraces ? name : `${kind}/${name}`;
  const at = `/api/v1/training_runs/${encodeURIComponent(run)}/checkpoints/${checkpoint}/archive`;
  let found = await transport.get(at, { maxBytes });
  if (found.status === 302 && found.location !== null) found = await transport.get(found.location, { maxBytes });
  else if (found.status === 200 && found.bytes[0] === 0x7b) {
    const { url } = parsed(archiveAt, jsonOf(found.bytes, at), at);
    found = await transport.get(url, { maxBytes });
  }
  if (found.status !== 200) throw refusalOf(found.status, at, found.bytes);
  const files = untar(found.bytes);
  const [settings, tensors] = [files.get(config), files.get(weights)];
  if (!settings || !tensors)
    throw new EngineError(
      `The archive of ${path} holds ${[...files.keys()].join(', ')}, and not ${config} and ${weights}.`,
    );
  const { r, lora_alpha: alpha } = parsed(adapterConfig, jsonOf(settings, config), config);
  const written = {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: base,
    r,
    lora_alpha: alpha,
    target_modules: layersIn(tensors),
    lora_dropout: 0,
    bias: 'none',
    fan_in_fan_out: false,
    inference_mode: true,
  };
  return new Map([
    [config, Buffer.from(`${JSON.stringify(written, null, 2)}\n`)],
    [weights, tensors],
  ]);
}

/** The layers that a safetensors file of an adapter has weights for. */
function layersIn(tensors: Buffer): string[] {
  const size = Number(tensors.readBigUInt64LE(0));
  if (size > Math.min(tensors.length - 8, 2 ** 27)) throw new EngineError('The adapter in the archive is cut off.');
  const names = Object.keys(
    parsed(z.record(z.string(), z.unknown()), jsonOf(tensors.subarray(8, 8 + size), weights), weights),
  );
  const layers = names.flatMap((name) => /([A-Za-z0-9_]+)\.lora_A\.weight$/.exec(name)?.[1] ?? []);
  return [...new Set(layers)].sort();
}

function unzipped(bytes: Buffer): Buffer {
  try {
    return gunzipSync(bytes, { maxOutputLength: maxBytes });
  } catch (cause) {
    throw new DamagedArchive(`The archive is damaged: ${(cause as Error).message}.`, { cause });
  }
}

/** Plain files of a tar, gzipped or not, by their last name. */
export function untar(bytes: Buffer): Map<string, Buffer> {
  const tar = bytes[0] === 0x1f && bytes[1] === 0x8b ? unzipped(bytes) : bytes;
  const files = new Map<string, Buffer>();
  for (let at = 0; at + 512 <= tar.length; ) {
    const name = tar.toString('utf8', at, at + 100).replace(/\0.*$/s, '');
    if (name === '') break;
    const size = Number.parseInt(tar.toString('ascii', at + 124, at + 136), 8);
    const type = String.fromCharCode(tar[at + 156]!);
    if (!Number.isSafeInteger(size) || size < 0 || at + 512 + size > tar.length)
      throw new DamagedArchive(`The archive is damaged: ${JSON.stringify(name)} does not lie within it.`);
    if (type === '0' || type === '\0')
      files.set(name.slice(name.lastIndexOf('/') + 1), tar.subarray(at + 512, at + 512 + size));
    at += 512 + Math.ceil(size / 512) * 512;
  }
  return files;
}
