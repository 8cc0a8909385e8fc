/**
 * The record of a release on its way to the users, and its states:
 *
 *   waiting      made, but a person must approve it first (settings.approval, or a report that is not a pass); gets nothing
 *   shadow       no user gets the candidate; it is asked beside the baseline, and both answers are compared
 *   canary       step i: the share settings.steps[i] of the users gets the candidate
 *   paused       a person must decide; the present share stays as it is, and a failing check still rolls back
 *   promoted     ended: the candidate is the agent's release
 *   rolled-back  ended: everybody gets the baseline
 *
 *   waiting → shadow      approve; with no shadow in the settings, canary
 *   shadow  → canary      advance: the comparisons are fine
 *   canary  → canary      advance: next step; look: the promotion's question was asked, and what was found is kept
 *   shadow, canary → paused      pause: patience ran out without an answer; hold: a person wants to look first
 *   paused  → canary      approve: after a pause the next step (after the last, promoted); after a hold the same step anew;
 *                         from shadow likewise: the first step, or shadow anew
 *   any but ended → promoted      promote: the last step held, or a person said so
 *   any but ended → rolled-back   rollback (a check failed) or abort (a person said so)
 *
 * What moves it automatically is decide.ts, what it may begin with admit.ts; this file only says which moves exist.
 */
import { z } from 'zod';
import type { Origin } from '../collect/trajectory.ts';
import { ConflictError } from '../errors.ts';
import { declaredChecks } from './checks/declared.ts';
import type { Look } from './promotion.ts';
import { shadowSettings } from './shadow.ts';

const seconds = (description: string) => ({ unit: 'seconds', description });

export const rolloutSettings = z
  .strictObject({
    steps: z
      .array(z.number().gt(0).max(1))
      .min(1)
      .max(100)
      .default([0.05, 0.25, 0.5, 1])
      .describe('Shares of users on the candidate, growing, the last one all.'),
    holdSeconds: z.number().nonnegative().default(86_400).meta(seconds('How long each step is held at least.')),
    patienceSeconds: z
      .number()
      .nonnegative()
      .default(7 * 86_400)
      .meta(seconds('After this long, a step that found no answer asks a person.')),
    minTurns: z
      .int()
      .min(1)
      .default(100)
      .meta({ unit: 'calls', description: 'Model calls each side needs before anything is concluded from them.' }),
    minUnits: z.int().min(2).default(30).meta({
      unit: 'users',
      description: 'Users (or conversations, where users are unknown) with an outcome that each side needs.',
    }),
    outcome: z
      .string()
      .min(1)
      .max(128)
      .nullable()
      .default('resolved')
      .describe('The outcome that must not get worse, any number that is better when higher; null: none is measured.'),
    outcomeMargin: z
      .number()
      .nonnegative()
      .default(0.05)
      .describe('By how much the mean may be below the baseline’s for a step to count as passed.'),
    errorRatio: z.number().min(1).default(1.5).describe('Error rate, in times the baseline’s, that is tolerated.'),
    latencyRatio: z
      .number()
      .min(1)
      .default(1.5)
      .describe('99th percentile of latency, in times the baseline’s, that is tolerated.'),
    latencySlackMs: z.number().nonnegative().default(250).meta({
      unit: 'ms',
      description: 'So much above the baseline’s 99th percentile is never too slow.',
    }),
    checks: declaredChecks,
    alpha: z
      .number()
      .gt(0)
      .max(0.5)
      .default(0.05)
      .describe(
        'Probability that a candidate as good as the baseline is ever rolled back, all checks, steps and looks.',
      ),
    shadow: shadowSettings
      .prefault({})
      .describe('Before any user gets the candidate it is asked beside the baseline, and what it says is compared.'),
    firstByteSeconds: z.number().positive().max(600).default(5).meta({
      unit: 'seconds',
      description:
        'How long a caller waits for the first byte of the candidate before the baseline answers, which counts as its error; twice the baseline’s own time where that is longer.',
    }),
    promotion: z
      .strictObject({
        rule: z
          .enum(['non-inferiority', 'superiority', 'checks'])
          .default('non-inferiority')
          .describe(
            'What must be shown before everybody gets the candidate: that users do not fare worse by `margin`, that they fare better, or no more than that all checks pass.',
          ),
        margin: z
          .number()
          .positive()
          .default(0.03)
          .describe('For non-inferiority: by how much the mean outcome of users may be below the baseline’s.'),
        users: z.int().min(10).max(10_000_000).default(1200).meta({
          unit: 'users',
          description:
            'After how many users the question is settled, were they split evenly. A step with the share s gives 4·s·(1 − s) of its users.',
        }),
        looks: z.int().min(1).max(20).default(4).meta({
          unit: 'looks',
          description: 'How often the question is asked on the way to that many users.',
        }),
        alpha: z
          .number()
          .gt(0)
          .max(0.5)
          .default(0.025)
          .describe('Probability that a candidate that does not meet the rule is ever found to meet it.'),
      })
      .prefault({})
      .describe('The test behind a promotion, by user, on the outcome; without an outcome the checks alone decide.'),
    taskRouting: z
      .enum(['off', 'measured'])
      .default('off')
      .describe(
        'measured: when a rollout has ended, types of task at which the release that does not serve was shown to be better go to it.',
      ),
    compatibility: z
      .enum(['required', 'off'])
      .default('required')
      .describe(
        'required: whatever begins to serve has passed a check of what its server can do (evaluate.compatibility), or passes it then and there; off: nobody asks.',
      ),
    approval: z
      .enum(['automatic', 'human'])
      .default('automatic')
      .describe('human: a rollout waits for `pawl rollouts approve` even after a report that passes.'),
    notPassed: z
      .enum(['ask', 'refuse'])
      .default('ask')
      .describe(
        'After a report that neither passes nor fails: ask makes the rollout wait for a person, refuse makes none.',
      ),
  })
  .refine(({ steps }) => steps.every((share, i) => i === 0 || share > steps[i - 1]!) && steps.at(-1) === 1, {
    path: ['steps'],
    message: 'must grow from step to step and end with 1, e.g. [0.05, 0.25, 0.5, 1]',
  })
  .refine(({ steps, outcome, promotion }) => steps[0] !== 1 || outcome === null || promotion.rule === 'checks', {
    path: ['promotion', 'rule'],
    message:
      'compares users of both releases, and steps [1] leave nobody with the baseline; begin with a smaller step, or set it to checks',
  });
export type RolloutSettings = Readonly<z.output<typeof rolloutSettings>>;

/** The traffic a rollout is judged by: that of users, or, for an agent that learns from simulation, simulated. */
export type MeasuredOrigin = Extract<Origin, 'production' | 'simulation'>;

export const rolloutId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/, 'letters, digits and _ . : - only, at most 128');

export const phases = ['waiting', 'shadow', 'canary', 'paused', 'promoted', 'rolled-back'] as const;
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
  /** As they were when it began, with the traffic it is judged by; without one it is production. */
  readonly settings: RolloutSettings & { readonly origin?: MeasuredOrigin };
  /** Why it is where it is, in sentences. */
  readonly reasons: readonly string[];
  /** When each step began that it has come to; all of them are compared. */
  readonly stepsAt: readonly number[];
  /** What was found whenever the promotion's question was asked. */
  readonly looks: readonly Look[];
  readonly version: number;
  readonly createdAt: number; // ms since epoch, as below
  /** When the first user could get the candidate. */
  readonly startedAt: number | null;
  /** When the present step began; null before the first, and while a person holds it. */
  readonly stepSince: number | null;
  readonly endedAt: number | null;
};

export const isOpen = ({ phase }: Pick<Rollout, 'phase'>): boolean => phase !== 'promoted' && phase !== 'rolled-back';

/** Whether the candidate is asked beside the baseline, and nobody gets it. */
export const isShadowing = ({ phase, startedAt }: Pick<Rollout, 'phase' | 'startedAt'>): boolean =>
  phase === 'shadow' || (phase === 'paused' && startedAt === null);

/** Where a rollout begins once it may. */
export const beginning = (settings: RolloutSettings, now: number) =>
  settings.shadow.share > 0
    ? ({ phase: 'shadow', step: 0, startedAt: null, stepSince: now, stepsAt: [] } as const)
    : ({ phase: 'canary', step: 0, startedAt: now, stepSince: now, stepsAt: [now] } as const);

/** Share of users that gets the candidate. */
export function weightOf({
  phase,
  step,
  settings,
  startedAt,
}: Pick<Rollout, 'phase' | 'step' | 'settings' | 'startedAt'>): number {
  switch (phase) {
    case 'waiting':
    case 'shadow':
    case 'rolled-back':
      return 0;
    case 'canary':
    case 'paused':
      return startedAt === null ? 0 : settings.steps[step]!;
    case 'promoted':
      return 1;
    default:
      return phase satisfies never;
  }
}

/** What a person can do. */
export const personMoves = ['approve', 'hold', 'promote', 'abort'] as const;
export type PersonMove = (typeof personMoves)[number];
/** Where a person gives no reason; a promotion by hand has none that is usual. */
export const usualReason: Readonly<Record<Exclude<PersonMove, 'promote'>, string>> = {
  approve: 'Approved.',
  hold: 'Held.',
  abort: 'Aborted.',
};
export type Move = PersonMove | 'advance' | 'pause' | 'rollback' | 'look';

/** The rollout after a move, or a ConflictError that says why there is no such move. */
export function moved(
  rollout: Rollout,
  move: Move,
  reasons: readonly string[],
  now: number,
  look: Look | null = null,
): Rollout {
  const { id, phase, step, settings } = rollout;
  const isLast = step === settings.steps.length - 1;
  const change = (fields: Partial<Rollout>): Rollout => ({
    ...rollout,
    reasons: [...reasons],
    version: rollout.version + 1,
    ...fields,
  });
  const firstStep = () => change({ phase: 'canary', step: 0, startedAt: now, stepSince: now, stepsAt: [now] });
  const nextStep = () =>
    change({ phase: 'canary', step: step + 1, stepSince: now, stepsAt: [...rollout.stepsAt, now] });
  const promoted = () => change({ phase: 'promoted', startedAt: rollout.startedAt ?? now, endedAt: now });
  const refuse = (): never => {
    throw new ConflictError(
      `Rollout ${id} is ${phase}${phase === 'canary' ? ` at step ${step + 1}` : ''} and cannot ${move}${wayOut(rollout)}.`,
    );
  };
  switch (move) {
    case 'approve':
      if (phase === 'waiting') return change(beginning(settings, now));
      if (phase !== 'paused') return refuse();
      if (rollout.startedAt === null)
        return rollout.stepSince === null ? change(beginning(settings, now)) : firstStep();
      if (rollout.stepSince === null) return change({ phase: 'canary', stepSince: now });
      return isLast ? promoted() : nextStep();
    case 'hold':
      return phase === 'canary' || phase === 'shadow' ? change({ phase: 'paused', stepSince: null }) : refuse();
    case 'advance':
      if (phase === 'shadow') return firstStep();
      return phase === 'canary' && !isLast ? nextStep() : refuse();
    case 'look':
      return phase === 'canary' && look !== null ? change({ looks: [...rollout.looks, look] }) : refuse();
    case 'pause':
      return phase === 'canary' || phase === 'shadow' ? change({ phase: 'paused' }) : refuse();
    case 'promote':
      return isOpen(rollout) ? promoted() : refuse();
    case 'rollback':
    case 'abort':
      return isOpen(rollout) ? change({ phase: 'rolled-back', endedAt: now }) : refuse();
    default:
      return move satisfies never;
  }
}

const wayOut = (rollout: Rollout): string =>
  isOpen(rollout) ? '' : '; it has ended, and `pawl releases serve` changes what answers';
