/**
 * The record of a training run, and what must be kept so that it survives its process. Implemented by store/runs.ts on
 * Postgres and, for tests, in memory below.
 *
 * run          one training run: its recipe, seed, budget, and how far it is
 * checkpoint   weights on disk after a number of steps, with the stage's state; a run resumes from the newest
 *
 * States: running → finished | stopped | paused | failed; paused, stopped and failed may run again; so may a `running`
 * whose process is gone. `request` stands until a process takes the run again: it tells what somebody paused from what was
 * merely interrupted.
 */
import type { InternalMark } from '../engine/internal-mark.ts';
import type { EpisodeStep, KeptEpisode } from './kept-episodes.ts';
import type { StepMetrics } from './metrics.ts';
import { ownerName } from './owner.ts';
import type { Budget, Spent } from './stop.ts';

export const runStatuses = ['running', 'paused', 'stopped', 'finished', 'failed'] as const;
export type RunStatus = (typeof runStatuses)[number];

export type RunRecord = {
  readonly id: string;
  readonly agent: string;
  readonly recipe: string;
  /** What the recipe was built from, so that a resume builds the same one. JSON. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** What the run started from: a reference, or a path. */
  readonly base: string;
  /** Where its metrics.jsonl is, on the machine that began it. */
  readonly folder: string;
  readonly seed: number;
  readonly steps: number;
  /** Steps finished. */
  readonly step: number;
  readonly status: RunStatus;
  /** Why it is not running any more, in a sentence. */
  readonly reason: string | null;
  readonly budget: Budget;
  readonly spent: Spent;
  /** What somebody asked of the process that runs it. */
  readonly request: 'pause' | 'stop' | null;
  /** The process that runs it (owner.ts). */
  readonly owner: string | null;
  readonly heartbeatAt: number; // ms since epoch
  readonly createdAt: number;
  /** Its weights learned from what is confidential, and stay inside the deployment. */
  readonly internal: boolean;
};

export type RunCheckpoint = {
  readonly run: string;
  /** Steps finished when it was made. */
  readonly step: number;
  /** `stage`: as a stage began, without optimizer state; `step`: in the middle or at the end of one, with it. */
  readonly kind: 'stage' | 'step';
  readonly stage: number;
  /** A reference, or a path on the machine that made it. */
  readonly folder: string;
  readonly state: unknown;
  readonly validation: number | null;
};

export interface RunStore {
  create(run: RunRecord): Promise<void>;
  get(id: string): Promise<RunRecord | null>;
  /** Newest first. */
  list(limit?: number): Promise<readonly RunRecord[]>;
  /** Takes the run over if it is as it was seen; false if somebody took it, or asked something of it, meanwhile. */
  claim(id: string, seen: Pick<RunRecord, 'owner' | 'request'>, owner: string, now: number): Promise<boolean>;
  heartbeat(id: string, now: number): Promise<void>;
  /** Writes a step's metrics, what is kept of its episodes and the run's progress together; says what was asked of the run meanwhile. */
  saveStep(
    id: string,
    metrics: StepMetrics,
    spent: Spent,
    now: number,
    episodes?: readonly KeptEpisode[],
  ): Promise<RunRecord['request']>;
  setStatus(id: string, status: RunStatus, reason: string | null, now: number): Promise<void>;
  request(id: string, request: RunRecord['request']): Promise<void>;
  /** Steps of which episodes are kept, in their order. */
  episodeSteps(id: string): Promise<readonly EpisodeStep[]>;
  /** Of a step, the best first. */
  episodes(id: string, step: number): Promise<readonly KeptEpisode[]>;
  /** In order of steps. */
  metrics(id: string, from?: number): Promise<readonly StepMetrics[]>;
  /** Forgets steps from `step` on: they will be done again. */
  rewind(id: string, step: number): Promise<void>;
  saveCheckpoint(checkpoint: RunCheckpoint): Promise<void>;
  dropCheckpoint(run: string, folder: string): Promise<void>;
  /** In order of steps, then stages. */
  checkpoints(id: string): Promise<readonly RunCheckpoint[]>;
}

/** Whether a process may take the run; the sentence says why not. */
export function claimRefusal(run: RunRecord, now: number, alive: (owner: string) => boolean | null): string | null {
  if (run.status === 'finished') return `Run ${run.id} is finished; start a new one from its checkpoint.`;
  if (run.status !== 'running' || run.owner === null) return null;
  const living = alive(run.owner);
  // A process on another machine cannot be asked; its silence must do.
  const silent = now - run.heartbeatAt > 60_000;
  if (living === false || (living === null && silent)) return null;
  return `Run ${run.id} is being run by ${ownerName(run.owner)}; stop it there first.`;
}

/** What the weights of an internal run carry. */
export const markOf = ({ agent, id, settings: { dataset } }: RunRecord): InternalMark => ({
  agent,
  run: id,
  dataset: typeof dataset === 'string' ? dataset : null,
});

/** The checkpoint a run is judged by: the best on validation, the newest of equals; without validation, the newest. */
export function bestCheckpoint(checkpoints: readonly RunCheckpoint[]): RunCheckpoint | null {
  let best: RunCheckpoint | null = null;
  for (const c of checkpoints) if (!best || (c.validation ?? -1) >= (best.validation ?? -1)) best = c;
  return best;
}

/** Keeps everything in this process and nowhere else: for tests and for benches that need no history. */
export function memoryRunStore(): RunStore {
  const runs = new Map<string, RunRecord>();
  const rows = new Map<string, Map<number, StepMetrics>>();
  const saved = new Map<string, RunCheckpoint[]>();
  const kept = new Map<string, Map<number, readonly KeptEpisode[]>>();
  const need = (id: string): RunRecord => {
    const run = runs.get(id);
    if (!run) throw new Error(`There is no run ${id}.`);
    return run;
  };
  const patch = (id: string, change: Partial<RunRecord>) => runs.set(id, { ...need(id), ...change });
  return {
    async create(run) {
      if (runs.has(run.id)) throw new Error(`A run ${run.id} exists already; choose another id.`);
      runs.set(run.id, run);
      rows.set(run.id, new Map());
      saved.set(run.id, []);
      kept.set(run.id, new Map());
    },
    get: async (id) => runs.get(id) ?? null,
    list: async (limit = 50) => [...runs.values()].sort((a, b) => b.createdAt - a.createdAt).slice(0, limit),
    async claim(id, seen, owner, now) {
      if (need(id).owner !== seen.owner || need(id).request !== seen.request) return false;
      patch(id, { owner, status: 'running', reason: null, request: null, heartbeatAt: now });
      return true;
    },
    heartbeat: async (id, now) => void patch(id, { heartbeatAt: now }),
    async saveStep(id, metrics, spent, now, episodes = []) {
      rows.get(id)!.set(metrics.step, structuredClone(metrics));
      kept.get(id)!.set(metrics.step, structuredClone(episodes));
      patch(id, { step: metrics.step + 1, spent, heartbeatAt: now });
      return need(id).request;
    },
    setStatus: async (id, status, reason, now) =>
      void patch(id, { status, reason, heartbeatAt: now, ...(status === 'running' ? {} : { owner: null }) }),
    request: async (id, request) => void patch(id, { request }),
    episodeSteps: async (id) =>
      [...kept.get(id)!].flatMap(([step, episodes]) => {
        const [first] = episodes;
        if (first === undefined) return [];
        return [{ step, task: first.task, taskType: first.taskType, rewards: episodes.map(({ reward }) => reward) }];
      }),
    episodes: async (id, step) => kept.get(id)!.get(step) ?? [],
    metrics: async (id, from = 0) =>
      [...rows.get(id)!.values()].filter((m) => m.step >= from).sort((a, b) => a.step - b.step),
    async rewind(id, step) {
      for (const key of [...rows.get(id)!.keys()]) if (key >= step) rows.get(id)!.delete(key);
      for (const key of [...kept.get(id)!.keys()]) if (key >= step) kept.get(id)!.delete(key);
      patch(id, { step });
    },
    async saveCheckpoint(checkpoint) {
      const list = saved.get(checkpoint.run)!.filter((c) => c.folder !== checkpoint.folder);
      saved.set(
        checkpoint.run,
        [...list, structuredClone(checkpoint)].sort((a, b) => a.step - b.step || a.stage - b.stage),
      );
    },
    async dropCheckpoint(run, folder) {
      saved.set(
        run,
        saved.get(run)!.filter((c) => c.folder !== folder),
      );
    },
    checkpoints: async (id) => saved.get(id) ?? [],
  };
}
