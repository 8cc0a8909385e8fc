/**
 * For commands that let a release begin to serve: the check goes through the Pawl that runs, or, where none does, through one that is
 * started for it.
 */
import { type CommonOptions, type Opened, sentence, withHome } from '../command.ts';
import type { Config } from '../config.ts';
import { withDoor } from '../evaluate/door.ts';
import type { Store } from '../store/postgres.ts';
import { type FitAgent, type FitAsked, mustFit } from './fit.ts';
import type { Release } from './release.ts';

/** How a gateway is come by; src/with-serving.ts knows. */
export type Reach = {
  /** Address of one that runs; null where none does. */
  readonly running: (config: Config, store: Store) => Promise<string | null>;
  readonly started: <T>(
    config: Config,
    use: (reached: { readonly store: Store; readonly url: string }) => Promise<T>,
  ) => Promise<T>;
};

export const unfitOption = [
  '--unfit <why>',
  'let it through though it does not fit its server, or nobody could tell; stands in the audit log',
  sentence(2000),
] as const;

/** That of the agent's, bound to what is about to happen. */
export type FitOf = (agent: FitAgent) => (release: Release) => Promise<void>;

class NothingRuns extends Error {}

/** `act` asks its `fit` before it changes anything, and is called again once it has been asked for elsewhere. */
export async function withFit(
  reach: Reach,
  options: CommonOptions,
  asked: FitAsked,
  act: (opened: Opened, fitOf: FitOf) => Promise<void>,
): Promise<void> {
  const say = (text: string) => console.error(text);
  const left: { readonly config: Config; readonly agent: FitAgent; readonly release: Release }[] = [];
  const once = () =>
    withHome(options, 'existing', async (opened) => {
      const { config, store } = opened;
      const fitOf: FitOf = (agent) => (release) =>
        mustFit(
          {
            ...{ store, upstreams: config.upstreams, say },
            async withDoor(use) {
              const url = await reach.running(config, store);
              if (url !== null) return withDoor(store, { agent: agent.name, url }, use);
              left.push({ config, agent, release });
              throw new NothingRuns();
            },
          },
          agent,
          release,
          asked,
        );
      await act(opened, fitOf).catch((error: unknown) => {
        if (!(error instanceof NothingRuns)) throw error;
      });
    });
  await once();
  if (left[0] === undefined) return;
  const { config, agent, release } = left[0];
  await reach.started(config, ({ store, url }) =>
    mustFit(
      {
        ...{ store, upstreams: config.upstreams, say },
        withDoor: (use) => withDoor(store, { agent: agent.name, url }, use),
      },
      agent,
      release,
      asked,
    ),
  );
  await once();
}
