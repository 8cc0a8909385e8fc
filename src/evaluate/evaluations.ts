/** Evaluations in the process that serves: through its own door and on its own engine, for whoever asks over the API. */
import { uuidv7 } from '../collect/uuid.ts';
import { agentOf, type Config } from '../config.ts';
import type { Store } from '../store/postgres.ts';
import { type AskedEvaluation, findAsked } from './ask.ts';
import { withDoor } from './door.ts';
import { createJobs, type Job } from './jobs.ts';
import { evaluateReleases, type Play } from './run.ts';

export type Evaluations = {
  /** null: one of this agent runs already. Throws a ConfigError for what cannot be evaluated. */
  start(agent: string, asked: AskedEvaluation): Promise<Job | null>;
  get(id: string): Job | null;
  close(): Promise<void>;
};

export function createEvaluations(given: {
  readonly store: Store;
  readonly config: Pick<Config, 'agents'>;
  /** Address of this process. */
  readonly url: string;
  readonly withEngine: NonNullable<Play['withEngine']>;
}): Evaluations {
  const { store, config, url, withEngine } = given;
  const jobs = createJobs(() => `evaluation-${uuidv7()}`);
  return {
    async start(name, asked) {
      const agent = agentOf(config, name);
      if (jobs.running(name) !== null) return null;
      const found = await findAsked(store, agent, asked);
      return jobs.start(name, (signal, onProgress) =>
        evaluateReleases({
          ...found,
          play: { withEngine, withDoor: (use) => withDoor(store, { agent: name, url, signal }, use) },
          signal,
          onProgress,
        }),
      );
    },
    get: jobs.get,
    close: jobs.close,
  };
}
