/**
 * How the cost of sampling grows: with parameters, with the attempts that run together, and with the context. Each line
 * is the time from the first token of all attempts to their last, one prompt token each, temperature 1. The table of
 * docs/engine.md is this bench's output.
 *
 * `tokens per CPU s` counts the processor time of the whole process instead of the clock: with --threads 1 it is the figure
 * to compare on a busy machine. (With more, threads that wait for each other count as working.)
 *
 * Options: --rounds N (default 3), --threads N (default: the machine's cores).
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { parameterCount, parseModelConfig } from '../src/engine/onnx/config.ts';
import { createSampler } from '../src/engine/onnx/sampler.ts';
import { randomWeights } from '../src/engine/onnx/weights.ts';

const { values: options } = parseArgs({
  options: { rounds: { type: 'string', default: '3' }, threads: { type: 'string' } },
});
const rounds = Number(options.rounds);
const threads = Number(options.threads ?? availableParallelism());
const cpuSeconds = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};
const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;

const cases = [
  { hidden: 128, attempts: 1, context: 256 },
  { hidden: 128, attempts: 8, context: 256 },
  { hidden: 128, attempts: 64, context: 64 },
  { hidden: 128, attempts: 64, context: 256 },
  { hidden: 128, attempts: 64, context: 1024 },
  { hidden: 256, attempts: 64, context: 256 },
  { hidden: 512, attempts: 64, context: 256 },
];

console.log(
  '| hidden | parameters | attempts | context | tokens/s | ms per step | tokens per CPU s | snapshot ms | MiB |',
);
console.log('|---|---|---|---|---|---|---|---|---|');
const lines = [];
for (const { hidden, attempts, context } of cases) {
  const config = parseModelConfig({
    model_type: 'qwen3',
    hidden_size: hidden,
    intermediate_size: 3 * hidden,
    num_hidden_layers: 4,
    num_attention_heads: hidden / 64,
    num_key_value_heads: hidden / 128,
    head_dim: 64,
    vocab_size: 512,
    max_position_embeddings: context,
    tie_word_embeddings: true,
  });
  const weights = randomWeights(config, 1);
  const found = [];
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    const sampler = await createSampler(config, weights, { threads, slots: attempts });
    const made = performance.now();
    const prompts = Array.from({ length: attempts }, (_, i) => [i]);
    const before = cpuSeconds();
    await sampler.sample(prompts, { maxTokens: context - 1, stopTokens: [], seed: round });
    const step = (performance.now() - made) / (context - 1);
    const cpu = (cpuSeconds() - before) / (context - 1);
    found.push({ snapshot: made - start, step, cpu, bytes: sampler.bytes });
    await sampler.close();
  }
  const step = median(found.map((f) => f.step));
  const line = {
    hidden,
    parameters: parameterCount(config),
    attempts,
    context,
    tokens_per_s: Math.round((1000 * attempts) / step),
    ms_per_step: Number(step.toFixed(2)),
    tokens_per_cpu_s: Math.round(attempts / median(found.map((f) => f.cpu))),
    snapshot_ms: Number(median(found.map((f) => f.snapshot)).toFixed(1)),
    mib: Number((found[0]!.bytes / 2 ** 20).toFixed(1)),
  };
  lines.push(line);
  console.log(`| ${Object.values(line).join(' | ')} |`);
}
console.log(JSON.stringify({ threads, lines }));
