import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { EngineError } from '../errors.ts';
import { inspectCheckpoint, mergeAdapter, readCheckpoint, writeCheckpoint } from './checkpoint.ts';
import { type Tensors, writeSafetensors } from './safetensors.ts';

let dir: string;
let folder: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'pawl-checkpoint-'));
  folder = join(dir, 'model');
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const tensors = (entries: Record<string, number[]>): Tensors =>
  new Map(
    Object.entries(entries).map(([name, data]) => [name, { shape: [data.length], data: Float32Array.from(data) }]),
  );

const ones = (version: number) => ({ config: { version }, weights: tensors({ w: [version, version] }) });

describe('a checkpoint', () => {
  test('comes back as it was written: config, weights, optimizer state, tokenizer files', async () => {
    const written = {
      config: { model_type: 'qwen3', hidden_size: 4 },
      weights: tensors({ 'model.norm.weight': [1, 2, 3, 4] }),
      optimizer: {
        step: 7,
        m: tensors({ 'model.norm.weight': [0.1, 0.2, 0.3, 0.4] }),
        v: tensors({ 'model.norm.weight': [1e-9, 0, 0, 1] }),
        metadata: { engine: '0.1.0', seed: '42' },
      },
      files: new Map([['tokenizer.json', Buffer.from('{"version":"1.0"}')]]),
    };
    await writeCheckpoint(folder, written);
    const read = await readCheckpoint(folder);
    expect(read.config).toEqual({ ...written.config, dtype: 'float32' });
    expect(read.weights).toEqual(written.weights);
    expect(read.optimizer).toEqual({ ...written.optimizer, metadata: { ...written.optimizer.metadata, format: 'pt' } });
    expect(Buffer.from(read.files.get('tokenizer.json')!).toString()).toBe('{"version":"1.0"}');
    expect(await readdir(dir)).toEqual(['model']);
  });

  test('may be sharded', async () => {
    await mkdir(folder);
    await writeFile(join(folder, 'config.json'), '{}');
    await writeSafetensors(join(folder, 'model-1.safetensors'), tensors({ a: [1], b: [2] }));
    await writeSafetensors(join(folder, 'model-2.safetensors'), tensors({ c: [3] }));
    const index = join(folder, 'model.safetensors.index.json');
    const map = { a: 'model-1.safetensors', b: 'model-1.safetensors', c: 'model-2.safetensors' };
    await writeFile(index, JSON.stringify({ weight_map: map }));
    expect((await readCheckpoint(folder)).weights).toEqual(tensors({ a: [1], b: [2], c: [3] }));
    expect((await inspectCheckpoint(folder)).parameters).toBe(3);

    await writeFile(index, JSON.stringify({ weight_map: { ...map, d: 'model-2.safetensors' } }));
    await expect(readCheckpoint(folder)).rejects.toThrow(/model-2.safetensors holds "d", but it does not/);
    await writeFile(index, JSON.stringify({ weight_map: { a: '../../etc/passwd' } }));
    await expect(readCheckpoint(folder)).rejects.toThrow(/only files of its own folder/);
  });

  test('with NaN or infinite weights is neither written nor read, and the tensor is named', async () => {
    await expect(
      writeCheckpoint(folder, { config: {}, weights: tensors({ ok: [1], bad: [1, Number.NaN] }) }),
    ).rejects.toThrow(/bad holds NaN at element 1/);
    expect(await readdir(dir)).toEqual([]);
    await mkdir(folder);
    await writeFile(join(folder, 'config.json'), '{}');
    await writeSafetensors(join(folder, 'model.safetensors'), tensors({ w: [0, Number.NEGATIVE_INFINITY] }));
    await expect(readCheckpoint(folder)).rejects.toThrow(/w holds -Infinity at element 1/);
  });

  test('that is missing or incomplete says what is missing', async () => {
    await expect(readCheckpoint(folder)).rejects.toThrow(EngineError);
    await expect(readCheckpoint(folder)).rejects.toThrow(`There is no checkpoint folder ${folder}.`);
    await mkdir(folder);
    await expect(readCheckpoint(folder)).rejects.toThrow(/config.json cannot be opened/);
    await writeFile(join(folder, 'config.json'), '{"a":');
    await expect(readCheckpoint(folder)).rejects.toThrow(/config.json is not JSON/);
    await writeFile(join(folder, 'config.json'), '{}');
    await expect(readCheckpoint(folder)).rejects.toThrow(/neither model.safetensors nor/);
  });
});

describe('an adapter', () => {
  const matrix = (rows: number, columns: number, data: number[]) => ({
    shape: [rows, columns],
    data: Float32Array.from(data),
  });
  const q = 'model.layers.0.self_attn.q_proj';
  const adapter = {
    rank: 1,
    alpha: 2,
    targets: ['q_proj'],
    weights: new Map([
      [`${q}.lora_A.weight`, matrix(1, 2, [1, 10])],
      [`${q}.lora_B.weight`, matrix(3, 1, [1, 2, 3])],
    ]),
  };

  test('is a PEFT folder over its base, and both move together', async () => {
    const base = join(dir, 'base');
    const weights: Tensors = new Map([[`${q}.weight`, matrix(3, 2, [0, 0, 0, 0, 0, 1])]]);
    await writeCheckpoint(base, {
      config: { model_type: 'qwen3' },
      weights,
      files: new Map([['tokenizer.json', Buffer.from('{}')]]),
    });
    await writeCheckpoint(folder, { config: {}, adapter: { ...adapter, base } });
    const config = JSON.parse(await readFile(join(folder, 'adapter_config.json'), 'utf8'));
    expect(config).toMatchObject({ peft_type: 'LORA', r: 1, lora_alpha: 2, target_modules: ['q_proj'] });
    expect(config.base_model_name_or_path).toBe('../base');

    const moved = `${dir}-moved`;
    await rename(dir, moved);
    try {
      const read = await readCheckpoint(join(moved, 'model'));
      expect(read.adapter).toEqual(adapter);
      expect(read.weights).toEqual(weights);
      expect(read.config.model_type).toBe('qwen3');
      expect([...read.files.keys()]).toEqual(['tokenizer.json']);
      // scale 2 · B·A: rows (1, 10), (2, 20), (3, 30) doubled, on top of the base
      expect([...mergeAdapter(read.weights, read.adapter!).get(`${q}.weight`)!.data]).toEqual([2, 20, 4, 40, 6, 61]);
      expect((await inspectCheckpoint(join(moved, 'model'))).adapter).toMatchObject({ rank: 1, parameters: 5 });
    } finally {
      await rename(moved, dir);
    }
  });

  test('whose settings would be ignored is refused', async () => {
    await writeCheckpoint(folder, { config: {}, adapter: { ...adapter, base: join(dir, 'nowhere') } });
    await expect(readCheckpoint(folder)).rejects.toThrow(
      /base model of the adapter in .* cannot be read. There is no checkpoint folder .*nowhere/,
    );
    const file = join(folder, 'adapter_config.json');
    const config = JSON.parse(await readFile(file, 'utf8'));
    for (const [change, message] of [
      [{ use_rslora: true }, /sets use_rslora/],
      [{ rank_pattern: { q_proj: 4 } }, /sets rank_pattern/],
      [{ bias: 'all' }, /bias is "all"/],
      [{ r: 0 }, /rank r is 0/],
      [{ peft_type: 'IA3' }, /peft_type is "IA3"/],
      [{ base_model_name_or_path: '.' }, /names itself/],
    ] as const) {
      await writeFile(file, JSON.stringify({ ...config, ...change }));
      await expect(readCheckpoint(folder)).rejects.toThrow(message);
    }
  });
});

describe('replacing a checkpoint', () => {
  const version = async () => (await readCheckpoint(folder)).config.version;

  test('leaves the new one and nothing else', async () => {
    await writeCheckpoint(folder, ones(1));
    await writeCheckpoint(folder, ones(2));
    expect(await version()).toBe(2);
    expect(await readdir(dir)).toEqual(['model']);
  });

  test('a writer that died between the two renames is recovered from, by readers and by the next writer', async () => {
    await writeCheckpoint(folder, ones(1));
    await rename(folder, join(dir, '.model.previous'));
    expect(await version()).toBe(1);
    await writeCheckpoint(join(dir, 'other'), ones(2));
    await rename(join(dir, 'other'), join(dir, '.model.next'));
    expect(await version()).toBe(2);
    await expect(writeCheckpoint(folder, { config: {}, weights: tensors({ w: [Number.NaN] }) })).rejects.toThrow();
    expect(await version()).toBe(2);
    await writeCheckpoint(folder, ones(3));
    expect(await version()).toBe(3);
    expect(await readdir(dir)).toEqual(['model']);
  });

  test('a failed write leaves the old one, and a half-written folder is never read but cleaned away', async () => {
    await writeCheckpoint(folder, ones(1));
    await expect(
      writeCheckpoint(folder, { ...ones(2), files: new Map([['../escape', Buffer.from('')]]) }),
    ).rejects.toThrow(/only files of its own folder/);
    expect(await version()).toBe(1);
    expect(await readdir(dir)).toEqual(['model']);

    await rm(folder, { recursive: true });
    const half = join(dir, '.model.writing-999999999-ab');
    await mkdir(half);
    await writeFile(join(half, 'config.json'), '{}');
    await expect(readCheckpoint(folder)).rejects.toThrow(/no checkpoint folder/);
    await writeCheckpoint(folder, ones(3));
    expect(await readdir(dir)).toEqual(['model']);
  });

  test('a folder that holds something else is never replaced', async () => {
    await mkdir(folder);
    await writeFile(join(folder, 'thesis.txt'), 'years of work');
    await expect(writeCheckpoint(folder, ones(1))).rejects.toThrow(/holds other files and no checkpoint/);
    expect(await readdir(folder)).toEqual(['thesis.txt']);
    await expect(writeCheckpoint(join(folder, 'thesis.txt'), ones(1))).rejects.toThrow(/ENOTDIR/);
  });

  test('two writers in one process take turns', async () => {
    await Promise.all([1, 2, 3, 4].map((n) => writeCheckpoint(folder, ones(n))));
    expect(await version()).toBe(4);
    expect(await readdir(dir)).toEqual(['model']);
  });

  test('killed at any moment, the folder loads as one complete version, never older than the last one finished', async () => {
    let finished = 0;
    for (let round = 0; round < 25; round++) {
      const script = join(import.meta.dirname, 'fixtures/write-loop.ts');
      const child = spawn(process.execPath, ['--import', 'tsx', script, folder, String(finished + 1)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const gone = new Promise((done) => child.once('close', done));
      let output = '';
      const started = new Promise<void>((done) => {
        child.stdout.on('data', (text: Buffer) => {
          output += text;
          done();
        });
      });
      await started;
      try {
        expectWhole(await readCheckpoint(folder)); // while it writes
        const delay = (round * 7) % 23; // ms after the first finished version: lands in every step of a write
        await new Promise((done) => setTimeout(done, delay));
      } finally {
        child.kill('SIGKILL');
        await gone;
      }
      const lines = output.trim().split('\n');
      const reported = Number(lines.at(-1));
      const after = await readCheckpoint(folder);
      expectWhole(after);
      expect(after.config.version).toBeGreaterThanOrEqual(reported);
      finished = after.config.version as number;
    }
    await writeCheckpoint(folder, ones(finished + 1));
    expect(await version()).toBe(finished + 1);
    expect(await readdir(dir)).toEqual(['model']);
  });
});

function expectWhole(read: Awaited<ReturnType<typeof readCheckpoint>>): void {
  const version = read.config.version as number;
  const seen = new Set<number>();
  for (const map of [read.weights, read.optimizer!.m, read.optimizer!.v]) {
    expect([...map.keys()]).toEqual(['a', 'b', 'c']);
    for (const { data } of map.values()) for (const value of data) seen.add(value);
  }
  expect([...seen]).toEqual([version]);
  expect(read.optimizer!.step).toBe(version);
  expect(JSON.parse(Buffer.from(read.files.get('generation_config.json')!).toString())).toEqual({ version });
}
