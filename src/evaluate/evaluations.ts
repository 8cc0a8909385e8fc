/** Evaluations in the process that has the API: through a gateway's door and on this process's engine, for whoever asks. */
import type { Artifacts } from '../artifacts/artifacts.ts';
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
  readonly artifacts: Artifacts;
  readonly config: Pick<Config, 'agents' | 'upstreams'>;
  /** Address of a gateway, without /v1. */
  readonly gatewayUrl: () => Promise<string>;
  /** Without it, everything goes through the gateway. */
  readonly withEngine?: NonNullable<Play['withEngine']>;
}): Evaluations {
  const { store, artifacts, config, gatewayUrl, withEngine } = given;
  const jobs = createJobs(() => `evaluation-${uuidv7()}`);
  return {
    async start(name, asked) {
      const agent = agentOf(config, name);
      if (jobs.running(name) !== null) return null;
      const found = await findAsked(store, artifacts, agent, asked);
      return jobs.start(name, (signal, onProgress) =>
        evaluateReleases({
          ...found,
          upstreams: config.upstreams,
          play: {
            ...(withEngine === undefined ? {} : { withEngine }),
            withDoor: async (use) => withDoor(store, { agent: name, url: await gatewayUrl(), signal }, use),
          },
          signal,
          onProgress,
        }),
      );
    },
    get: jobs.get,
    close: jobs.close,
  };
}
