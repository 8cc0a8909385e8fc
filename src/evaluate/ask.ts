/** An evaluation as somebody asks for it: releases and a file by name. All of that is looked up before anything is played. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isReference } from '../artifacts/artifact.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import type { Config } from '../config.ts';
import { engineWeights } from '../engine/open.ts';
import { ConfigError, NotFoundError } from '../errors.ts';
import type { Store } from '../store/postgres.ts';
import { firstOfLine, readRelease, servingRelease } from '../store/releases.ts';
import { readSuite } from './read-suite.ts';
import type { Contestant, EvaluateReleases } from './run.ts';

export type AskedEvaluation = {
  readonly candidate: string;
  /** Default: what serves. */
  readonly baseline?: string | undefined;
  /** Path of a file, or a reference. Default: the agent's golden file. */
  readonly suite?: string | undefined;
  /** Cases as they are, instead. */
  readonly cases?: readonly unknown[] | undefined;
  /** Who asks; stands in the audit log. */
  readonly by?: string | undefined;
  readonly attempts?: number | undefined;
  readonly seed?: number | undefined;
};

export async function findAsked(
  store: Store,
  artifacts: Artifacts,
  agent: Config['agents'][number],
  asked: AskedEvaluation,
): Promise<Omit<EvaluateReleases, 'play' | 'upstreams' | 'signal' | 'onProgress'>> {
  if (asked.cases !== undefined) {
    const folder = await mkdtemp(join(tmpdir(), 'pawl-suite-'));
    try {
      const path = join(folder, 'given.jsonl');
      await writeFile(path, asked.cases.map((one) => `${JSON.stringify(one)}\n`).join(''));
      return await findAsked(store, artifacts, agent, { ...asked, cases: undefined, suite: path });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
  const path = asked.suite ?? agent.evaluate.golden;
  if (path === undefined)
    throw new ConfigError(
      `There is nothing to judge by: set \`evaluate: { golden: './golden.jsonl' }\` in the file of agent ${agent.name}, or name a file with --suite. docs/evaluate.md says what is in it.`,
    );
  const file = isReference(path) ? await artifacts.file(path) : path;
  const suite = await readSuite(file, agent.name, agent.environment ?? null);
  // What was judged by can be looked at, and judged by again, wherever the report is read.
  const artifact = isReference(path) ? path : await artifacts.add({ kind: 'suite' }, file);
  const candidate = await named(store, agent.name, asked.candidate);
  const baseline =
    asked.baseline === undefined ? await serving(store, agent.name) : await named(store, agent.name, asked.baseline);
  const base = await baseOf(store, agent, [candidate, baseline]);
  const { attempts, seed, by } = asked;
  const broad =
    agent.evaluate.broad === undefined
      ? undefined
      : await readSuite(agent.evaluate.broad, agent.name, agent.environment ?? null);
  const rubric = agent.evaluate.rubric === undefined ? undefined : await readRubric(agent.evaluate.rubric);
  return {
    agent,
    store,
    artifacts,
    suite: { ...suite, artifact },
    baseline,
    candidate,
    base,
    broad,
    rubric,
    attempts,
    seed,
    by,
  };
}

const rubricCharacters = 100_000;

async function readRubric(path: string): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).slice(0, rubricCharacters);
  } catch (error) {
    throw new ConfigError(`The rubric ${path} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

const contestant = (release: NonNullable<Awaited<ReturnType<typeof readRelease>>>): Contestant => ({
  ...{ name: release.name, upstream: release.upstream },
  ...{ checkpoint: engineWeights(release), internal: release.internal },
});

async function named(store: Store, agent: string, name: string) {
  const release = await readRelease(store, { agent, name });
  if (release !== null) return contestant(release);
  throw new NotFoundError(
    `Agent ${agent} has no release ${name}; \`pawl releases list --agent ${agent}\` shows those that exist, \`pawl releases create\` makes one.`,
  );
}

async function serving(store: Store, agent: string) {
  const release = await servingRelease(store, agent);
  if (release !== null) return contestant(release);
  throw new ConfigError(
    `No release of agent ${agent} serves yet, so there is nothing to compare with: name a release with --baseline, or let one serve with \`pawl releases serve NAME\`.`,
  );
}

/** From what drift is counted beside the baseline: what the candidate's line began with, or what the settings name; undefined where that is one of the two that play. */
async function baseOf(
  store: Store,
  { name: agent, evaluate: { base } }: Config['agents'][number],
  [candidate, baseline]: readonly [Contestant, Contestant],
): Promise<Contestant | undefined> {
  if (base !== undefined && (await readRelease(store, { agent, name: base })) === null)
    throw new ConfigError(
      `\`evaluate.base\` of agent ${agent} names ${base}, which is none of its releases; \`pawl releases list --agent ${agent}\` shows those that exist.`,
    );
  const found =
    base === undefined
      ? contestant(await firstOfLine(store, (await readRelease(store, { agent, name: candidate.name }))!.id))
      : await named(store, agent, base);
  return found.name === candidate.name || found.name === baseline.name ? undefined : found;
}
