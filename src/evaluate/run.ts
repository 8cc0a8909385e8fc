/**
 * Plays a suite with the baseline and with the candidate, each task with the same seeds, and judges. The same seed gives the
 * same report but for its times, so an evaluation that was killed is simply run again.
 */
import type { Engine } from '../engine/engine.ts';
import { EngineError } from '../errors.ts';
import { type ChatCodec, enginePlayer, watchEngine } from '../simulate/engine-player.ts';
import type { Environment } from '../simulate/environment.ts';
import { type Episode, play } from '../simulate/episode.ts';
import { type Comparison, compare } from './compare.ts';
import { measureDrift } from './drift.ts';
import { type Report, reportId } from './report.ts';
import type { TaskSuite } from './suite.ts';
import { judge, type VerdictSettings } from './verdict.ts';

export type Contender = {
  /** Name of the release or checkpoint; it goes into the report. */
  readonly name: string;
  /** The model's name at the engine, where it is loaded already. */
  readonly model: string;
};

export type EvaluateOptions<Data, Database> = {
  readonly agent: string;
  readonly engine: Engine;
  readonly environment: Environment<Data, Database>;
  readonly suite: TaskSuite<Data>;
  readonly codec: ChatCodec;
  readonly baseline: Contender;
  readonly candidate: Contender;
  readonly attempts?: number; // 1
  readonly seed?: number; // 0
  readonly temperature?: number; // 1
  readonly settings?: VerdictSettings;
  readonly signal?: AbortSignal;
  readonly onProgress?: (played: number, total: number) => void;
  readonly now?: () => number;
};

export async function evaluate<Data, Database>(options: EvaluateOptions<Data, Database>): Promise<Report> {
  const { agent, engine, environment, suite, codec, settings, signal, onProgress, now = Date.now } = options;
  const { attempts = 1, seed = 0, temperature = 1 } = options;
  const began = now();
  const total = 2 * suite.tasks.length * attempts;
  const playWith = ({ model }: Contender, before: number): Promise<Episode[][]> =>
    againIfDied(async () => {
      const watched = watchEngine(engine);
      let played = before;
      const episodes = await play(
        environment,
        enginePlayer(watched.engine, model, codec, { temperature }),
        suite.tasks,
        {
          attempts,
          seed,
          ...(signal ? { signal } : {}),
          onEpisode: () => onProgress?.(++played, total),
        },
      );
      watched.throwIfDied();
      return episodes;
    });
  const baseline = (await playWith(options.baseline, 0)).map(solvedShare);
  const episodes = await playWith(options.candidate, total / 2);
  const candidate = episodes.map(solvedShare);
  // One attempt at each task is enough to see how it talks.
  const firsts = episodes.map((group) => group[0]!);
  const drift = await againIfDied(() => measureDrift(engine, options.baseline.model, firsts, signal));
  const tasks = suite.tasks.map(({ id, type }, i) => ({
    id,
    type,
    baseline: baseline[i]!,
    candidate: candidate[i]!,
  }));
  const asked = {
    agent,
    baseline: options.baseline.name,
    candidate: options.candidate.name,
    suite: { name: suite.name, hash: suite.hash, tasks: suite.tasks.length },
    attempts,
    temperature,
    seed,
  };
  const { overall, types } = compareTasks(tasks, seed);
  return {
    id: reportId(asked),
    ...asked,
    overall,
    types,
    tasks,
    drift,
    ...mutable(judge({ tasks: tasks.length, overall, types, drift }, settings)),
    seconds: (now() - began) / 1000,
    createdAt: began,
  };
}

/** An engine that died comes back with the models it had, and the same seeds play the same episodes. */
async function againIfDied<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof EngineError && error.retryable) || tries === 3) throw error;
    }
  }
}

const mutable = ({ verdict, reasons }: ReturnType<typeof judge>) => ({ verdict, reasons: [...reasons] });

/** Attempts that broke for reasons outside the model say nothing about it; a task with no other attempt is not measured. */
function solvedShare(episodes: readonly Episode[]): number | null {
  const valid = episodes.filter(({ outcome }) => outcome !== 'crashed' && outcome !== 'failed');
  return valid.length === 0 ? null : valid.filter(({ success }) => success).length / valid.length;
}

/** Tasks that both played, in all and by type. */
export function compareTasks(
  tasks: Report['tasks'],
  seed: number,
): { overall: Comparison | null; types: Record<string, Comparison> } {
  const measured = tasks.flatMap(({ type, baseline, candidate }) =>
    baseline === null || candidate === null ? [] : [{ type, baseline, candidate }],
  );
  const types: Record<string, Comparison> = Object.create(null);
  for (const type of new Set(measured.map((pair) => pair.type))) {
    const of = compare(
      measured.filter((pair) => pair.type === type),
      seed,
    );
    if (of) types[type] = of;
  }
  return { overall: compare(measured, seed), types: { ...types } };
}
