/** Each family against Hugging Face transformers: figures in fixtures/, recorded by scripts/record-engine-fixture.py. */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseModelConfig } from './config.ts';
import { Decoder } from './decode.ts';
import { createOnnxEngine } from './engine.ts';
import { Trainer } from './trainer.ts';

type Recorded = {
  config: unknown;
  tensors: Record<string, { shape: number[]; values: string; gradientNorm: number; gradientStart: number[] }>;
  sequences: { ids: number[]; weights: string; logits: string; logprobs: string; entropies: string }[];
  loss: number;
  gradientNorm: number;
  saved?: { files: Record<string, string>; ids: number[]; logprobs: string };
};

const recordedModels = (family: string) =>
  (
    JSON.parse(readFileSync(new URL(`../fixtures/${family}.json`, import.meta.url), 'utf8')) as {
      models: Record<'tied' | 'untied', Recorded>;
    }
  ).models;

const floats = (base64: string) => new Float32Array(Uint8Array.from(Buffer.from(base64, 'base64')).buffer);

function load(recorded: Recorded) {
  const config = parseModelConfig(recorded.config);
  const weights = new Map(Object.entries(recorded.tensors).map(([name, t]) => [name, floats(t.values)]));
  const data = recorded.sequences.map((s) => ({
    tokens: s.ids.slice(0, -1),
    targets: s.ids.slice(1),
    weights: floats(s.weights),
  }));
  return { config, weights, trainer: new Trainer({ config, weights }, { threads: 1 }), data };
}

const furthest = (a: Float32Array, b: Float32Array) => a.reduce((most, x, i) => Math.max(most, Math.abs(x - b[i]!)), 0);

const kinds = [
  ['qwen3', 'tied', 'Qwen3 with a tied head'],
  ['qwen3', 'untied', 'Qwen3 with a head of its own'],
  ['qwen2', 'tied', 'Qwen2.5 with a tied head, biases on queries, keys and values'],
  ['qwen2', 'untied', 'Qwen2.5 with a head of its own'],
  ['llama', 'tied', 'Llama with a tied head, as SmolLM2'],
  ['llama', 'untied', 'Llama with a head of its own and positions stretched as in Llama 3'],
] as const;

describe.each(kinds)('a small random %s, %s: %s,', (family, kind) => {
  const recorded = recordedModels(family)[kind];

  test('gives the logprobs and entropies transformers gives', async () => {
    const { trainer, data } = load(recorded);
    const { logprobs, entropies } = await trainer.forward(data);
    for (const [i, s] of recorded.sequences.entries()) {
      expect(logprobs[i]!.length).toBe(s.ids.length - 1);
      expect(furthest(logprobs[i]!, floats(s.logprobs))).toBeLessThan(1e-4);
      expect(furthest(entropies![i]!, floats(s.entropies))).toBeLessThan(1e-4);
    }
    await trainer.close();
  });

  test('gives the whole distribution transformers gives, at every position', async () => {
    const { trainer, data } = load(recorded);
    const { tokens } = data[0]!;
    const logits = floats(recorded.sequences[0]!.logits);
    const vocabulary = trainer.config.vocab_size;
    const every = Array.from({ length: vocabulary }, (_, id) => ({ tokens, targets: tokens.map(() => id) }));
    const { logprobs } = await trainer.forward(every);
    for (let i = 0; i < tokens.length; i++) {
      const row = logits.subarray(i * vocabulary, (i + 1) * vocabulary);
      const sum = Math.log(row.reduce((total, x) => total + Math.exp(x), 0));
      for (let id = 0; id < vocabulary; id++)
        expect(Math.abs(logprobs[id]![i]! - (row[id]! - sum)), `position ${i}, id ${id}`).toBeLessThan(1e-4);
    }
    await trainer.close();
  });

  test('gives the logits transformers gives when it decodes token by token', async () => {
    const { config, weights, data } = load(recorded);
    const { tokens } = data[0]!;
    const logits = floats(recorded.sequences[0]!.logits);
    const decoder = await Decoder.create(config, weights, 1);
    const [prefix] = await decoder.prefill([
      { tokens: Int32Array.from(tokens.slice(0, 4)), temperature: 1, wantLogprobs: false },
    ]);
    const expected = (i: number) => logits.subarray(i * config.vocab_size, (i + 1) * config.vocab_size);
    expect(furthest(prefix!.scores.logits, expected(3))).toBeLessThan(1e-3);
    decoder.reserve(1, tokens.length, 0, 2 ** 30);
    decoder.place(prefix!, 0);
    for (let i = 4; i < tokens.length; i++) {
      const [scores] = await decoder.step([{ token: tokens[i]!, length: i, temperature: 1 }]);
      expect(furthest(scores!.logits, expected(i)), `position ${i}`).toBeLessThan(1e-3);
    }
    await decoder.close();
  });

  test('gives the loss and the gradient of every tensor that torch gives', async () => {
    const { trainer, data } = load(recorded);
    const { loss } = await trainer.forwardBackward(data, { kind: 'cross_entropy' });
    expect(Math.abs(loss - recorded.loss)).toBeLessThan(1e-3 * Math.abs(recorded.loss));
    const gradients = trainer.gradients();
    expect([...gradients.keys()].sort()).toEqual(Object.keys(recorded.tensors).sort());
    for (const [name, t] of Object.entries(recorded.tensors)) {
      const gradient = gradients.get(name)!;
      const norm = Math.hypot(...gradient);
      // The bias of the keys moves all scores of a query alike, which softmax does not see: its gradient is rounding.
      const real = t.gradientNorm > 1e-4 * recorded.gradientNorm;
      if (real) expect(Math.abs(norm / t.gradientNorm - 1), name).toBeLessThan(1e-4);
      for (const [i, g] of t.gradientStart.entries())
        expect(Math.abs(gradient[i]! - g), `${name}[${i}]`).toBeLessThan(
          1e-4 * (real ? t.gradientNorm : recorded.gradientNorm),
        );
    }
    const { gradNorm } = trainer.optimStep({ learningRate: 0 });
    expect(Math.abs(gradNorm! / recorded.gradientNorm - 1)).toBeLessThan(1e-4);
    await trainer.close();
  });
});

describe.each([
  ['qwen2', 'BF16'],
  ['llama', 'F16'],
] as const)('the shards that transformers wrote of a %s in %s', (family, _) => {
  test('are loaded as the model that transformers has', async () => {
    const { files, ids, logprobs } = recordedModels(family).untied.saved!;
    expect(Object.keys(files)).toContain('model.safetensors.index.json');
    const folder = await mkdtemp(join(tmpdir(), 'pawl-shards-'));
    const engine = createOnnxEngine({ threads: 1 });
    try {
      for (const [name, bytes] of Object.entries(files)) await writeFile(join(folder, name), bytes, 'base64');
      await engine.load('m', folder);
      const found = await engine.forward('m', [{ tokens: ids.slice(0, -1), targets: ids.slice(1) }]);
      expect(furthest(found.logprobs[0]!, floats(logprobs))).toBeLessThan(1e-4);
      const [sampled] = await engine.sample('m', [ids], { maxTokens: 1, promptLogprobs: true });
      expect(furthest(sampled!.promptLogprobs!.subarray(1), floats(logprobs))).toBeLessThan(1e-4);
    } finally {
      await engine.close();
      await rm(folder, { recursive: true });
    }
  });
});
