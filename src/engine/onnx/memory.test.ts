import { totalmem } from 'node:os';
import { expect, test } from 'vitest';
import { parseModelConfig } from './config.ts';
import { cacheBytes, leastBytes, machineMemory, memoryNeed, needInWords } from './memory.ts';

/** SmolLM2-135M. */
const config = parseModelConfig({
  model_type: 'llama',
  hidden_size: 576,
  intermediate_size: 1536,
  num_hidden_layers: 30,
  num_attention_heads: 9,
  num_key_value_heads: 3,
  vocab_size: 49152,
  max_position_embeddings: 8192,
  tie_word_embeddings: true,
});

test('a container that allows less than the machine has is what counts; no limit is said as 0 or as too much', () => {
  expect(machineMemory(16e9, 4e9)).toBe(4e9);
  expect(machineMemory(16e9, 0)).toBe(16e9);
  expect(machineMemory(16e9, 2 ** 63)).toBe(16e9);
  expect(machineMemory()).toBeLessThanOrEqual(totalmem());
});

test('a model needs 4 bytes a parameter for weights, 4 for the copy that answers, 12 to train, and its keys and values', () => {
  const parameters = 134_515_008;
  const need = memoryNeed(config, parameters);
  expect(need).toEqual({
    weights: 4 * parameters,
    training: 12 * parameters,
    frozen: 4 * parameters,
    cache: 2 * 2048 * (2 * 4 * 30 * 3 * 64), // rows · tokens · (keys, values) · bytes · layers · heads · size
  });
  expect(leastBytes(need)).toBe(20 * parameters + need.cache);
  expect(needInWords(need)).toBe(
    '513.1 MiB of weights as float32, 1.5 GiB of gradients and optimizer state, 513.1 MiB for the copy that answers, at least 180.0 MiB of keys and values',
  );
  expect(needInWords(memoryNeed(config, 0))).not.toContain('gradients');
});

test('keys and values never take more than the context has', () => {
  expect(cacheBytes(config, 8, 100_000)).toBe(8 * 8192 * 46_080);
});
