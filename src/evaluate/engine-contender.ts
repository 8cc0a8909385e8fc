/**
 * A contender that plays an environment's tasks on an engine, with exact tokens: the only way that also tells how far its
 * answers have moved from the baseline's.
 */
import type { Engine } from '../engine/engine.ts';
import { EngineError } from '../errors.ts';
import { type ChatCodec, enginePlayer, watchEngine } from '../simulate/engine-player.ts';
import type { Environment } from '../simulate/environment.ts';
import { type Episode, play } from '../simulate/episode.ts';
import { answerOfEpisode } from './answer.ts';
import { measureDrift } from './drift.ts';
import type { Attempt, Contender } from './match.ts';
import type { TaskSuite } from './suite.ts';

export type EngineContender = Contender & {
  /** How far what it wrote last is from the way of another model of the engine. */
  driftFrom(model: string, signal?: AbortSignal): Promise<number | null>;
};

export type OnEngine<Data, Database> = {
  readonly engine: Engine;
  readonly environment: Environment<Data, Database>;
  readonly suite: TaskSuite<Data>;
  readonly temperature: number;
};

export function engineContender<Data, Database>(
  { engine, environment, suite, temperature }: OnEngine<Data, Database>,
  /** `model`: its name at the engine, where it is loaded already. */
  { name, model, codec }: { readonly name: string; readonly model: string; readonly codec: ChatCodec },
): EngineContender {
  let written: readonly Episode[] = [];
  return {
    name,
    async play({ attempts, seed, signal, onProgress }) {
      const episodes = await againIfDied(async () => {
        const watched = watchEngine(engine);
        let played = 0;
        const player = enginePlayer(watched.engine, model, codec, { temperature });
        const onEpisode = () => onProgress(++played);
        const done = await play(environment, player, suite.tasks, {
          attempts,
          seed,
          ...(signal ? { signal } : {}),
          onEpisode,
        });
        watched.throwIfDied();
        return done;
      });
      // One attempt at each task is enough to see how it talks.
      written = episodes.map((group) => group[0]!);
      return episodes.map((group) => group.map(attemptOf));
    },
    driftFrom: (other, signal) => againIfDied(() => measureDrift(engine, other, written, signal)),
  };
}

export function attemptOf(episode: Episode): Attempt {
  const { outcome, success, detail, reasons } = episode;
  return outcome === 'crashed' || outcome === 'failed'
    ? { solved: null, reasons: [detail] }
    : { solved: success, reasons: success ? [] : [...reasons], answer: answerOfEpisode(episode) };
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
