/**
 * Which faults come when: a function of the seed and of nothing else. Faults come in rounds, each fault once a round, in an
 * order of the round's own; now and then a second one comes while the first is on, if the two have nothing in common.
 */
import { random } from '../../src/simulate/random.ts';
import type { Fault } from './fault.ts';

export type Step = {
  readonly number: number;
  readonly fault: Fault;
  readonly holdMs: number;
  /** A second fault, this long after the first. */
  readonly meanwhile: { readonly fault: Fault; readonly afterMs: number; readonly holdMs: number } | null;
  /** Until the next step begins. */
  readonly calmMs: number;
};

const together = 0.3;
const calmMs = [200, 1500] as const;

/** `pace` shortens every wait, for runs of seconds. */
export function* schedule(seed: number, faults: readonly Fault[], pace = 1): Generator<Step, never> {
  const dice = random(seed, 'schedule');
  const between = ([low, high]: readonly [number, number]) => Math.round(pace * dice.integer(low, high));
  for (let number = 1; ; )
    for (const fault of dice.shuffle(faults)) {
      const others = faults.filter(({ parts }) => !parts.some((part) => fault.parts.includes(part)));
      const second = others.length > 0 && dice.chance(together) ? dice.pick(others) : null;
      const holdMs = between(fault.holdMs);
      yield {
        number: number++,
        fault,
        holdMs,
        meanwhile:
          second === null ? null : { fault: second, afterMs: dice.integer(0, holdMs), holdMs: between(second.holdMs) },
        calmMs: between(calmMs),
      };
    }
}

export const printStep = ({ number, fault, holdMs, meanwhile }: Step): string =>
  `${String(number).padStart(3)}. ${fault.name} for ${seconds(holdMs)}${
    meanwhile === null
      ? ''
      : `, and after ${seconds(meanwhile.afterMs)} ${meanwhile.fault.name} for ${seconds(meanwhile.holdMs)}`
  }`;

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
