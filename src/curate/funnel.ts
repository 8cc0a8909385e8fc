/**
 * The funnel: how many conversations came to each gate, how many it let through, and why the others were left out. What
 * one gate lets through is what comes to the next, so the numbers add up from the first line to the last.
 */
import { z } from 'zod';

const whole = z.int().nonnegative();

export const funnelStep = z.strictObject({
  gate: z.string(),
  entered: whole,
  passed: whole,
  /** Reason → how many were left out for it. */
  left: z.record(z.string(), whole),
});
export type FunnelStep = Readonly<z.infer<typeof funnelStep>>;

export type FunnelCount = {
  /** `reason` null: it passed. */
  add(gate: string, reason: string | null, count?: number): void;
  /** Every gate in its order, those nobody came to as well; reasons by name. */
  steps(): FunnelStep[];
};

export function countFunnel(gates: readonly string[]): FunnelCount {
  const counts = new Map(gates.map((gate) => [gate, { passed: 0, left: new Map<string, number>() }]));
  return {
    add(gate, reason, count = 1) {
      const at = counts.get(gate);
      if (at === undefined) throw new Error(`'${gate}' is not a gate of this funnel; it has ${gates.join(', ')}.`);
      if (reason === null) at.passed += count;
      else if (count > 0) at.left.set(reason, (at.left.get(reason) ?? 0) + count);
    },
    steps: () =>
      [...counts].map(([gate, { passed, left }]) => ({
        gate,
        entered: [...left.values()].reduce((sum, n) => sum + n, passed),
        passed,
        left: Object.fromEntries([...left].sort(([a], [b]) => (a < b ? -1 : 1))),
      })),
  };
}
