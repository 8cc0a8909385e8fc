/** A small adapter in PEFT's format, over a base that need not be there. */
import { writeCheckpoint } from '../src/engine/checkpoint.ts';

export async function writeTinyAdapter(
  folder: string,
  { rank = 2, value = 0.5, base = '/models/base' }: { rank?: number; value?: number; base?: string } = {},
): Promise<string> {
  const module = 'model.layers.0.self_attn.q_proj';
  await writeCheckpoint(folder, {
    config: {},
    adapter: {
      ...{ base, rank, alpha: 2 * rank, targets: ['q_proj'] },
      weights: new Map([
        [`${module}.lora_A.weight`, { shape: [rank, 16], data: new Float32Array(rank * 16).fill(value) }],
        [`${module}.lora_B.weight`, { shape: [16, rank], data: new Float32Array(rank * 16).fill(value) }],
      ]),
    },
  });
  return folder;
}
