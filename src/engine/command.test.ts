import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { readCheckpoint, writeCheckpoint } from './checkpoint.ts';
import { engineCommand, modelCommand } from './command.ts';
import { configOfSpec, parseSpec } from './model-spec.ts';
import { parseModelConfig } from './onnx/config.ts';
import { tokenizerFromFiles } from './tokenizer.ts';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'pawl-command-'));
});
afterAll(() => rm(dir, { recursive: true }));

/** Runs a command in this process: what it printed, or the sentence it failed with. */
async function pawl(...args: string[]): Promise<{ out: string; error: string }> {
  const out: string[] = [];
  const print = vi.spyOn(console, 'log').mockImplementation((line: string) => {
    out.push(line);
  });
  const program = new Command('pawl').addCommand(engineCommand()).addCommand(modelCommand());
  for (const command of [program, ...program.commands, ...program.commands.flatMap((c) => c.commands)]) {
    command.exitOverride().configureOutput({ writeErr: () => {} });
  }
  try {
    await program.parseAsync(args, { from: 'user' });
    return { out: out.join('\n'), error: '' };
  } catch (error) {
    return { out: out.join('\n'), error: (error as Error).message };
  } finally {
    print.mockRestore();
  }
}

describe('a spec', () => {
  test('gives the shape, and what is left out is derived', () => {
    expect(configOfSpec(parseSpec('d128-l4-h4-kv2-v512'))).toMatchObject({
      hidden_size: 128,
      intermediate_size: 384,
      num_hidden_layers: 4,
      num_attention_heads: 4,
      num_key_value_heads: 2,
      head_dim: 32,
      vocab_size: 512,
      max_position_embeddings: 1024,
      tie_word_embeddings: true,
    });
    expect(configOfSpec(parseSpec('c64-untied-v300-h2-l1-d16-hd32'))).toMatchObject({
      head_dim: 32,
      max_position_embeddings: 64,
      tie_word_embeddings: false,
    });
  });

  test.each([
    ['d128-l4-h4', /does not give vocabulary/],
    ['d128-l4-h4-v512-x9', /"x9" .* is not known/],
    ['d128-d64-l4-h4-v512', /gives hidden twice/],
    ['', /"" in the spec/],
    ['constructor1', /is not known/],
  ])('%s is refused', (text, message) => {
    expect(() => parseSpec(text)).toThrow(message);
  });
});

test('pawl model new, inspect and convert work on one folder after the other', async () => {
  const at = (name: string) => join(dir, name);
  const text = join(dir, 'text.txt');
  await writeFile(text, 'the order the order the order 123 456');
  const made = await pawl('model', 'new', 'd16-l2-h2-kv1-v270-c64', at('tiny'), '--seed', '7', '--text', text);
  expect(made.error).toBe('');
  // 270·16 embedding + 2 layers of (16·16 + 2·8·16 + 16·16 attention + 3·16·48 feed-forward + 2·16 + 2·8 norms) + 16
  const parameters = 270 * 16 + 2 * (256 + 256 + 256 + 2304 + 32 + 16) + 16;
  expect(made.out).toContain(`${parameters.toLocaleString('en-US')} parameters, random with seed 7`);
  const tiny = await readCheckpoint(at('tiny'));
  expect(parseModelConfig(tiny.config).eos_token_ids).toEqual([
    tokenizerFromFiles(tiny.files)!.controls.get('<|im_end|>')!.id,
  ]);

  const again = await pawl('model', 'new', 'd16-l2-h2-kv1-v270-c64', at('tiny'));
  expect(again.error).toContain('tiny exists already');

  const inspected = await pawl('model', 'inspect', at('tiny'));
  expect(inspected.error).toBe('');
  expect(inspected.out).toMatch(/model +Qwen3, 2 layers of 16, 2 heads of 8 \(1 key\/value\)/);
  expect(inspected.out).toMatch(/to train +[\d.]+ (K|M)iB/);
  expect(inspected.out).toMatch(/speed +about [\d,]+ tokens\/s to train/);

  // An adapter over it: W + 2·B·A on one layer.
  const module = 'model.layers.0.self_attn.q_proj';
  await writeCheckpoint(at('adapter'), {
    config: {},
    adapter: {
      rank: 1,
      alpha: 2,
      targets: ['q_proj'],
      base: at('tiny'),
      weights: new Map([
        [`${module}.lora_A.weight`, { shape: [1, 16], data: new Float32Array(16).fill(1) }],
        [`${module}.lora_B.weight`, { shape: [16, 1], data: new Float32Array(16).fill(0.5) }],
      ]),
    },
  });
  expect((await pawl('model', 'inspect', at('adapter'))).out).toMatch(
    /adapter +rank 1, alpha 2, 32 parameters on q_proj/,
  );
  expect((await pawl('model', 'convert', at('adapter'), at('merged'), '--merge-adapter')).error).toBe('');
  const merged = await readCheckpoint(at('merged'));
  const [before, after] = [tiny, merged].map((c) => c.weights.get(`${module}.weight`)!.data);
  expect([...after!]).toEqual(Array.from(before!, (x) => Math.fround(x + 1)));

  expect((await pawl('model', 'convert', at('tiny'), at('half'), '--dtype', 'bf16')).out).toContain('bfloat16');
  expect(JSON.parse(await readFile(join(at('half'), 'config.json'), 'utf8')).dtype).toBe('bfloat16');
  const half = await readCheckpoint(at('half'));
  const name = 'model.embed_tokens.weight';
  for (const [i, value] of half.weights.get(name)!.data.entries()) {
    const exact = tiny.weights.get(name)!.data[i]!;
    expect(Math.abs(value - exact)).toBeLessThanOrEqual(Math.abs(exact) * 2 ** -8);
  }
  expect((await pawl('model', 'convert', at('tiny'), at('x'), '--merge-adapter')).error).toContain(
    'holds no adapter to merge',
  );
  expect((await readdir(dir)).sort()).toEqual(['adapter', 'half', 'merged', 'text.txt', 'tiny']);
});

test('shards of another family in half precision are looked at and written again as one file', async () => {
  const recorded = JSON.parse(await readFile(new URL('fixtures/llama.json', import.meta.url), 'utf8'));
  const [shards, whole] = [join(dir, 'shards'), join(dir, 'whole')];
  await mkdir(shards);
  for (const [name, bytes] of Object.entries(recorded.models.untied.saved.files as Record<string, string>))
    await writeFile(join(shards, name), bytes, 'base64');
  const { out } = await pawl('model', 'inspect', shards);
  expect(out).toMatch(/model +Llama, 2 layers of 16, 4 heads of 8 \(2 key\/value\)/);
  expect(out).toMatch(/in 21 tensors, F16,/);
  expect((await pawl('model', 'convert', shards, whole, '--dtype', 'bf16')).error).toBe('');
  expect((await readdir(whole)).sort()).toEqual(['config.json', 'generation_config.json', 'model.safetensors']);
});

test('mistakes are explained in a sentence', async () => {
  expect((await pawl('model', 'inspect', join(dir, 'nowhere'))).error).toContain('There is no checkpoint folder');
  expect((await pawl('engine', '--port', '99999')).error).toContain('Give a whole number from 0 to 65535');
  expect((await pawl('engine', '--model', 'a/tiny', 'b/tiny')).error).toContain('Two models are called tiny');
  expect((await pawl('model', 'new', '--layers', '2', join(dir, 'x'))).error).toMatch(
    /Give a spec .*--hidden, --heads, --vocabulary/,
  );
});

test('an engine that is given too little memory for a model says what it needs', async () => {
  await pawl('model', 'new', 'd16-l2-h2-kv1-v270-c64', join(dir, 'small'));
  const { error } = await pawl('engine', '--model', join(dir, 'small'), '--memory', '50000', '--port', '0');
  expect(error).toMatch(/small \(\d+ parameters\) needs 0\.2 MiB; of the 0\.0 MiB this engine may use/);
});

test('the command line itself ends with the sentence and code 1', async () => {
  const bin = join(import.meta.dirname, '../../bin/pawl.js');
  const failed = promisify(execFile)(process.execPath, [bin, 'engine', '--model', join(dir, 'nowhere')]);
  await expect(failed).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('There is no checkpoint folder'),
  });
});
