/**
 * The record of a release on its way to the users, and its states:
 *
 *   waiting      made, but a person must approve it first (settings.approval, or a report that is not a pass); gets nothing
 *   canary       step i: the share settings.steps[i] of the users gets the candidate
 *   paused       a person must decide; the present share stays as it is, and a failing check still rolls back
 *   promoted     ended: the candidate is the agent's release
 *   rolled-back  ended: everybody gets the baseline
 *
 *   waiting → canary      approve
 *   canary  → canary      advance: next step
 *   canary  → promoted    promote: the last step held
 *   canary  → paused      pause: patience ran out without an answer
 *   paused  → canary      approve: goes on with the next step, or ends promoted after the last
 *   waiting, canary, paused → rolled-back   rollback (a check failed) or abort (a person said so)
 *
 * What moves it automatically is decide.ts; this file only says which moves exist. Shadow traffic, before the first step,
 * has no state here yet.
 */
import { z } from 'zod';

export const rolloutSettings = z
  .strictObject({
    /** Shares of users on the candidate, growing, the last one all. */
    steps: z.array(z.number().gt(0).max(1)).min(1).default([0.05, 0.25, 0.5, 1]),
    /** Seconds each step is held at least. */
    holdSeconds: z.number().nonnegative().default(86_400),
    /** Seconds after which a step that found no answer asks a person. */
    patienceSeconds: z
      .number()
      .nonnegative()
      .default(7 * 86_400),
    /** Model calls each side needs before anything is concluded from them. */
    minTurns: z.int().min(1).default(100),
    /** Users (or trajectories, where users are unknown) with an outcome that each side needs. */
    minUnits: z.int().min(2).default(30),
    /** The outcome that must not get worse, 0–1 or any number that is better when higher; null: none is measured. */
    outcome: z.string().nullable().default('resolved'),
    /** By how much the measured mean may be below the baseline's for a step to count as passed. */
    outcomeMargin: z.number().nonnegative().default(0.05),
    /** Error rate and 99th percentile of latency may be this many times the baseline's. */
    errorRatio: z.number().min(1).default(1.5),
    latencyRatio: z.number().min(1).default(1.5),
    /** Milliseconds above the baseline's 99th percentile that are never too slow. */
    latencySlackMs: z.number().nonnegative().default(250),
    /** Probability that a candidate as good as the baseline is ever rolled back, over all checks, steps and looks. */
    alpha: z.number().gt(0).max(0.5).default(0.05),
    approval: z.enum(['automatic', 'human']).default('automatic'),
  })
  .refine(({ steps }) => steps.every((share, i) => i === 0 || share > steps[i - 1]!) && steps.at(-1) === 1, {
    path: ['steps'],
    message: 'must grow from step to step and end with 1, e.g. [0.05, 0.25, 0.5, 1]',
  });
export type RolloutSettings = Readonly<z.output<typeof rolloutSettings>>;

export const phases = ['waiting', 'canary', 'paused', 'promoted', 'rolled-back'] as const;
export type Phase = (typeof phases)[number];

export type Rollout = {
  readonly id: string;
  readonly agent: string;
  /** Ids of releases. */
  readonly baseline: string;
  readonly candidate: string;
  readonly report: string | null;
  readonly phase: Phase;
  /** Index in settings.steps. */
  readonly step: number;
  readonly settings: RolloutSettings;
  /** Why it is where it is, in sentences. */
  readonly reasons: readonly string[];
  readonly version: number;
  readonly createdAt: number; // ms since epoch, as below
  /** When the first user could get the candidate. */
  readonly startedAt: number | null;
  readonly stepSince: number | null;
  readonly endedAt: number | null;
};

export const isOpen = ({ phase }: Pick<Rollout, 'phase'>): boolean =>
  phase === 'waiting' || phase === 'canary' || phase === 'paused';

/** Share of users that gets the candidate. */
export function weightOf({ phase, step, settings }: Pick<Rollout, 'phase' | 'step' | 'settings'>): number {
  switch (phase) {
    case 'waiting':
    case 'rolled-back':
      return 0;
    case 'canary':
    case 'paused':
      return settings.steps[step]!;
    case 'promoted':
      return 1;
    default:
      return phase satisfies never;
  }
}

export type Move = 'approve' | 'advance' | 'promote' | 'pause' | 'rollback' | 'abort';

/** The rollout after a move, or an Error that says why there is no such move. */
export function moved(rollout: Rollout, move: Move, reasons: readonly string[], now: number): Rollout {
  const { id, phase, step, settings } = rollout;
  const isLast = step === settings.steps.length - 1;
  const change = (fields: Partial<Rollout>): Rollout => ({
    ...rollout,
    reasons: [...reasons],
    version: rollout.version + 1,
    ...fields,
  });
  const refuse = (): never => {
    throw new Error(`Rollout ${id} is ${phase}${phase === 'canary' ? ` at step ${step + 1}` : ''} and cannot ${move}.`);
  };
  switch (move) {
    case 'approve':
      if (phase === 'waiting') return change({ phase: 'canary', step: 0, startedAt: now, stepSince: now });
      if (phase !== 'paused') return refuse();
      if (isLast) return change({ phase: 'promoted', endedAt: now });
      return change({ phase: 'canary', step: step + 1, stepSince: now });
    case 'advance':
      if (phase !== 'canary' || isLast) return refuse();
      return change({ step: step + 1, stepSince: now });
    case 'promote':
      if (phase !== 'canary' || !isLast) return refuse();
      return change({ phase: 'promoted', endedAt: now });
    case 'pause':
      return phase === 'canary' ? change({ phase: 'paused' }) : refuse();
    case 'rollback':
    case 'abort':
      return isOpen(rollout) ? change({ phase: 'rolled-back', endedAt: now }) : refuse();
    default:
      return move satisfies never;
  }
}
