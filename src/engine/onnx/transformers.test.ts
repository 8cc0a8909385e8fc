/** The model against Hugging Face transformers: figures in fixtures/qwen3.json, recorded by scripts/record-engine-fixture.py. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parseModelConfig } from './config.ts';
import { Trainer } from './trainer.ts';

type Recorded = {
  config: unknown;
  tensors: Record<string, { shape: number[]; values: string; gradientNorm: number; gradientStart: number[] }>;
  sequences: { ids: number[]; weights: string; logits: string; logprobs: string; entropies: string }[];
  loss: number;
  gradientNorm: number;
};

const fixture = JSON.parse(readFileSync(new URL('../fixtures/qwen3.json', import.meta.url), 'utf8')) as {
  models: Record<'tied' | 'untied', Recorded>;
};

const floats = (base64: string) => new Float32Array(Uint8Array.from(Buffer.from(base64, 'base64')).buffer);

function load(recorded: Recorded) {
  const config = parseModelConfig(recorded.config);
  const weights = new Map(Object.entries(recorded.tensors).map(([name, t]) => [name, floats(t.values)]));
  const data = recorded.sequences.map((s) => ({
    tokens: s.ids.slice(0, -1),
    targets: s.ids.slice(1),
    weights: floats(s.weights),
  }));
  return { trainer: new Trainer({ config, weights }, { threads: 1 }), data };
}

const furthest = (a: Float32Array, b: Float32Array) => a.reduce((most, x, i) => Math.max(most, Math.abs(x - b[i]!)), 0);

describe.each(['tied', 'untied'] as const)('a small random Qwen3 with a %s head', (kind) => {
  const recorded = fixture.models[kind];

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

  test('gives the loss and the gradient of every tensor that torch gives', async () => {
    const { trainer, data } = load(recorded);
    const { loss } = await trainer.forwardBackward(data, { kind: 'cross_entropy' });
    expect(Math.abs(loss - recorded.loss)).toBeLessThan(1e-3 * Math.abs(recorded.loss));
    const gradients = trainer.gradients();
    expect([...gradients.keys()].sort()).toEqual(Object.keys(recorded.tensors).sort());
    for (const [name, t] of Object.entries(recorded.tensors)) {
      const gradient = gradients.get(name)!;
      const norm = Math.hypot(...gradient);
      expect(Math.abs(norm / t.gradientNorm - 1), name).toBeLessThan(1e-4);
      for (const [i, g] of t.gradientStart.entries())
        expect(Math.abs(gradient[i]! - g), `${name}[${i}]`).toBeLessThan(1e-4 * t.gradientNorm);
    }
    const { gradNorm } = trainer.optimStep({ learningRate: 0 });
    expect(Math.abs(gradNorm / recorded.gradientNorm - 1)).toBeLessThan(1e-4);
    await trainer.close();
  });
});
