/** What an adapter must be to become a release's. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { writeTinyAdapter } from '../../test/tiny-adapter.ts';
import { openArtifacts } from '../artifacts/open.ts';
import { writeSafetensors } from '../engine/safetensors.ts';
import { adapterName, keepAdapter } from './adapter.ts';

const root = mkdtempSync(join(tmpdir(), 'pawl-adapter-'));
const artifacts = openArtifacts({ home: root, artifacts: join(root, 'artifacts'), artifactCacheMb: 1 });
afterAll(() => rmSync(root, { recursive: true, force: true }));

it('is kept as its two files alone, and the same again under the same name', async () => {
  const folder = await writeTinyAdapter(join(root, 'whole'));
  writeFileSync(join(folder, 'optimizer.safetensors'), 'large');
  const kept = await keepAdapter(artifacts, folder);
  expect(await keepAdapter(artifacts, folder)).toBe(kept);
  expect(await keepAdapter(artifacts, await artifacts.folder(kept))).toBe(kept);
  expect(readdirSync(await artifacts.folder(kept)).sort()).toEqual([
    'adapter_config.json',
    'adapter_model.safetensors',
  ]);
  expect((await artifacts.manifest(kept)).needs).toEqual([]);
  expect(adapterName('v2', kept)).toBe(`v2-${kept.slice('artifact:'.length, 'artifact:'.length + 12)}`);
  const other = await keepAdapter(artifacts, await writeTinyAdapter(join(root, 'other'), { value: 0.25 }));
  expect(adapterName('v2', other)).not.toBe(adapterName('v2', kept));
});

it('is refused with the file and the reason where no server could apply it', async () => {
  const spoil = async (name: string, change: (folder: string) => unknown): Promise<string> => {
    const folder = await writeTinyAdapter(join(root, name));
    await change(folder);
    return folder;
  };
  const config = (folder: string, text: string) => writeFileSync(join(folder, 'adapter_config.json'), text);
  const weights = (folder: string, names: readonly string[], value = 1) => {
    const file = join(folder, 'adapter_model.safetensors');
    rmSync(file);
    const tensor = { shape: [2, 16], data: new Float32Array(32).fill(value) };
    return writeSafetensors(file, new Map(names.map((name) => [name, tensor])), {});
  };
  const both = ['q.lora_A.weight', 'q.lora_B.weight'];
  for (const [name, change, why] of [
    ['no-weights', (at: string) => rmSync(join(at, 'adapter_model.safetensors')), /it needs adapter_config.json and/],
    ['no-json', (at: string) => config(at, '{'), /adapter_config.json is not JSON/],
    ['no-rank', (at: string) => config(at, '{"peft_type":"LORA","lora_alpha":4}'), /not that of a LoRA adapter: r: /],
    ['other-kind', (at: string) => config(at, '{"peft_type":"IA3","r":2,"lora_alpha":4}'), /peft_type/],
    ['cut', (at: string) => writeFileSync(join(at, 'adapter_model.safetensors'), 'cut'), /not a usable safetensors/],
    ['no-lora', (at: string) => weights(at, ['lm_head.weight']), /no tensor of it ends with .lora_A.weight/],
    ['half', (at: string) => weights(at, ['q.lora_A.weight']), /and no q.lora_B.weight/],
    ['wild', (at: string) => weights(at, both, Number.NaN), /q.lora_A.weight in .* holds NaN or infinity/],
  ] as const)
    await expect(keepAdapter(artifacts, await spoil(name, change))).rejects.toThrow(why);
  await expect(keepAdapter(artifacts, join(root, 'nowhere'))).rejects.toThrow(/nowhere/);
});
