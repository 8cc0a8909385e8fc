/** An evaluation as somebody asks for it: releases and a file by name. All of that is looked up before anything is played. */
import type { Config } from '../config.ts';
import { ConfigError, NotFoundError } from '../errors.ts';
import type { Store } from '../store/postgres.ts';
import { readRelease, servingRelease } from '../store/releases.ts';
import { readSuite } from './read-suite.ts';
import type { EvaluateReleases } from './run.ts';

export type AskedEvaluation = {
  readonly candidate: string;
  /** Default: what serves. */
  readonly baseline?: string | undefined;
  /** Path of a file. Default: the agent's golden file. */
  readonly suite?: string | undefined;
  readonly attempts?: number | undefined;
  readonly seed?: number | undefined;
};

export async function findAsked(
  store: Store,
  agent: Config['agents'][number],
  asked: AskedEvaluation,
): Promise<Pick<EvaluateReleases, 'agent' | 'store' | 'suite' | 'baseline' | 'candidate' | 'attempts' | 'seed'>> {
  const path = asked.suite ?? agent.evaluate.golden;
  if (path === undefined)
    throw new ConfigError(
      `There is nothing to judge by: set \`evaluate: { golden: './golden.jsonl' }\` in the file of agent ${agent.name}, or name a file with --suite. docs/evaluate.md says what is in it.`,
    );
  const suite = await readSuite(path, agent.name, agent.environment ?? null);
  const candidate = await named(store, agent.name, asked.candidate);
  const baseline =
    asked.baseline === undefined ? await serving(store, agent.name) : await named(store, agent.name, asked.baseline);
  return { agent, store, suite, baseline, candidate, attempts: asked.attempts, seed: asked.seed };
}

async function named(store: Store, agent: string, name: string) {
  const release = await readRelease(store, { agent, name });
  if (release !== null) return release;
  throw new NotFoundError(
    `Agent ${agent} has no release ${name}; \`pawl releases list --agent ${agent}\` shows those that exist, \`pawl releases create\` makes one.`,
  );
}

async function serving(store: Store, agent: string) {
  const release = await servingRelease(store, agent);
  if (release !== null) return release;
  throw new ConfigError(
    `No release of agent ${agent} serves yet, so there is nothing to compare with: name a release with --baseline, or let one serve with \`pawl releases serve NAME\`.`,
  );
}
