/** The angles of rotary positions (Su et al. 2021): cos and sin of position · theta^(−2i/d), each [positions, d / 2]. */
import type { ModelConfig } from './config.ts';

export function rotaryTables(config: ModelConfig, positions: number): { cos: Float32Array; sin: Float32Array } {
  const half = config.head_dim / 2;
  const cos = new Float32Array(positions * half);
  const sin = new Float32Array(positions * half);
  for (let i = 0; i < half; i++) {
    const frequency = config.rope_theta ** (-i / half);
    for (let p = 0; p < positions; p++) {
      cos[p * half + i] = Math.cos(p * frequency);
      sin[p * half + i] = Math.sin(p * frequency);
    }
  }
  return { cos, sin };
}
