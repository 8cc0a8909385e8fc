/**
 * How long users waited: 1 up to `target` seconds, 0 from `worst` on, a straight line between. The wait of a conversation is
 * the longest of its answers, because that is the one a user remembers. Meant as a penalty: speed is no merit of its own.
 */
import { type ComputingScorer, unmeasured } from './scorer.ts';

export type LatencyRange = { readonly target: number; readonly worst: number };

export function latency({ target, worst }: LatencyRange = { target: 10, worst: 15 }): ComputingScorer {
  if (!(target >= 0) || !(worst > target) || !Number.isFinite(worst))
    throw new Error(
      `A latency is worth 1 up to ${target} s and 0 from ${worst} s on; give two numbers, the second larger.`,
    );
  const worth = (seconds: number): number => Math.min(1, Math.max(0, (worst - seconds) / (worst - target)));
  return {
    name: 'latency',
    version: JSON.stringify(['latency', 2, target, worst]),
    inProcess: true,
    score({ turns }) {
      if (turns.length === 0) return unmeasured('nobody waited');
      const waits = turns.map(({ id, latencyMs }) => [id, latencyMs / 1000] as const);
      // What was imported need not say it.
      if (waits.every(([, seconds]) => seconds === 0)) return unmeasured('nobody recorded how long it took');
      const longest = Math.max(...waits.map(([, seconds]) => seconds));
      return {
        value: worth(longest),
        reason: `the longest answer took ${longest.toFixed(1)} s`,
        turns: new Map(waits.map(([id, seconds]) => [id, worth(seconds)])),
      };
    },
  };
}
