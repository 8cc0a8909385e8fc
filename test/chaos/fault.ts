/** What a fault is; each stands in a file of its own in faults/. */
import type { Random } from '../../src/simulate/random.ts';
import type { Excuse } from './ledger.ts';
import type { Stage } from './stage.ts';

/** What a fault has its hands on. Two faults at once never share a part. */
export type Part = 'gateway' | 'database' | 'disk' | 'log' | 'engine' | 'upstream' | 'clock' | 'callers';

export type Injected = {
  /** Which variant, in a few words. */
  readonly detail: string;
  /** Names of records whose only copy was destroyed. */
  readonly destroyed?: readonly string[];
  heal(): Promise<void> | void;
};

export type Fault = {
  readonly name: string;
  readonly does: string;
  readonly heals: string;
  /** What it may cost, and how that is counted. */
  readonly costs: string;
  readonly parts: readonly Part[];
  /** Shortest and longest time it stays, in milliseconds. */
  readonly holdMs: readonly [number, number];
  readonly excuses: readonly Excuse[];
  /** Why it cannot be done on this stage; null when it can. */
  unable(stage: Stage): string | null;
  inject(stage: Stage, random: Random): Promise<Injected>;
};

export const always = (): null => null;
