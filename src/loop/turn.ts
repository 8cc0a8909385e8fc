/** The record of one turn of the loop: what each stage left for the next, and how it ended. */
import type { Users } from '../deploy/users.ts';
import type { Verdict } from '../evaluate/verdict.ts';
import type { TrafficWindow } from '../store/loops.ts';
import type { Spent } from '../train/stop.ts';

export const stageNames = ['collect', 'score', 'curate', 'train', 'evaluate', 'deploy'] as const;
export type StageName = (typeof stageNames)[number];

export type Failure = { readonly stage: StageName; readonly at: number; readonly reason: string };

export type FunnelStep = { readonly gate: string; readonly entered: number; readonly passed: number };

/** Filled stage by stage; a stage that runs again overwrites its own part. */
export type LoopState = {
  /** Release that served when the turn began, and the checkpoint training starts from. */
  readonly baseline?: { readonly release: string; readonly checkpoint: string };
  /** What began the turn, and why. */
  readonly begun?: {
    readonly trigger: 'schedule' | 'evidence' | 'person';
    readonly reason: string;
    /** The traffic that a person asked for. */
    readonly window?: TrafficWindow;
  };
  readonly collect?: {
    /** Window of the traffic that counts, ms since epoch. */
    readonly since: number;
    readonly until: number;
    readonly conversations: number;
  };
  readonly score?: { readonly trajectories: number; readonly scored: number };
  readonly curate?: {
    /** Absent where nothing was kept: there is no empty dataset. */
    readonly dataset?: string;
    readonly rows: number;
    readonly pairs?: number;
    readonly funnel: readonly FunnelStep[];
    /** Why nothing was kept, in sentences; absent where something was. */
    readonly nothing?: string;
    /** Why the dataset is not trained on; absent where it may be. */
    readonly unready?: string;
  };
  readonly train?: {
    readonly run: string;
    readonly recipe?: string;
    /** Why this recipe, in sentences, where it was not set. */
    readonly reasons?: readonly string[];
    readonly steps: number;
    readonly tokens: number;
    readonly checkpoint: string;
  };
  readonly evaluate?: {
    readonly report: string;
    readonly verdict: Verdict;
    readonly before: number;
    readonly after: number;
    readonly interval: readonly [number, number];
    readonly p: number;
    readonly reasons: readonly string[];
  };
  readonly deploy?: {
    readonly rollout: string | null;
    readonly phase: string;
    readonly release: string;
    readonly reasons: readonly string[];
  };
  /** Why it ended before its last stage. */
  readonly ended?: string;
  /** What users got before and with the candidate; null where no outcome is measured. */
  readonly users?: Users | null;
  /** Seconds that each stage has worked, all its attempts together. */
  readonly seconds?: Readonly<Record<string, number>>;
  /** What the turn has used up. */
  readonly spent?: Spent;
  /** The newest failures of its stages, oldest first. */
  readonly failures?: readonly Failure[];
};

export type LoopTurn = {
  readonly agent: string;
  readonly number: number;
  readonly seed: number;
  readonly done: readonly StageName[];
  readonly state: LoopState;
  readonly startedAt: number; // ms since epoch
  readonly endedAt: number | null;
};

/** What `.pawl/summary.json` holds; the part that a seed decides, and what it took. */
export type Summary = {
  readonly agent: string;
  readonly turn: number;
  readonly seed: number;
  readonly before: number;
  readonly after: number;
  /** 95% interval of the difference. */
  readonly ci: readonly [number, number];
  readonly verdict: string;
  readonly promoted: boolean;
  readonly funnel: readonly FunnelStep[];
  /** Measured on users, where `before` and `after` are measured on golden cases. Canaries end when they end: no seed decides it. */
  readonly users: Users | null;
  readonly seconds: number;
};

export function summaryOf({ agent, number, seed, state, startedAt, endedAt }: LoopTurn): Summary | null {
  const { evaluate, deploy, curate } = state;
  if (evaluate === undefined || deploy === undefined || curate === undefined || endedAt === null) return null;
  return {
    agent,
    turn: number,
    seed,
    before: evaluate.before,
    after: evaluate.after,
    ci: evaluate.interval,
    verdict: evaluate.verdict,
    promoted: deploy.phase === 'promoted',
    funnel: curate.funnel,
    users: state.users ?? null,
    seconds: (endedAt - startedAt) / 1000,
  };
}
