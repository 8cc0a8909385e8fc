/** The angles of rotary positions (Su et al. 2021): cos and sin of position · theta^(−2i/d), each [positions, d / 2]. */
import type { ModelConfig, RopeScaling } from './config.ts';

export function rotaryTables(config: ModelConfig, positions: number): { cos: Float32Array; sin: Float32Array } {
  const half = config.head_dim / 2;
  const cos = new Float32Array(positions * half);
  const sin = new Float32Array(positions * half);
  for (let i = 0; i < half; i++) {
    const plain = config.rope_theta ** (-i / half);
    const frequency = config.rope_scaling === undefined ? plain : stretched(plain, config.rope_scaling);
    for (let p = 0; p < positions; p++) {
      cos[p * half + i] = Math.cos(p * frequency);
      sin[p * half + i] = Math.sin(p * frequency);
    }
  }
  return { cos, sin };
}

/**
 * Llama 3.1's stretching: a rotation that the original context saw `high` times or more keeps its speed, one it saw at most
 * `low` times is slowed by `factor`, and between the two the speed is mixed.
 */
function stretched(frequency: number, scaling: RopeScaling): number {
  const { factor, low_freq_factor: low, high_freq_factor: high, original_max_position_embeddings: context } = scaling;
  const turns = (context * frequency) / (2 * Math.PI);
  const kept = Math.min(Math.max((turns - low) / (high - low), 0), 1);
  return (kept + (1 - kept) / factor) * frequency;
}
