/**
 * Evaluates a candidate against a baseline, both releases of one agent, on one suite, and keeps the report. Tasks of an
 * environment are played on the engine where both have weights of their own, since only there exact tokens are known; all
 * else goes through the gateway.
 *
 * A report's id says what was asked, so an evaluation that was killed is simply run again, and one that was answered is not
 * played twice. One that could not be measured is.
 */
import type { Config } from '../config.ts';
import type { Engine } from '../engine/engine.ts';
import { ConfigError } from '../errors.ts';
import { loadChatCodec } from '../simulate/chat-codec.ts';
import type { Store } from '../store/postgres.ts';
import { readReport, saveReport } from '../store/reports.ts';
import type { Door } from './door.ts';
import { engineContender } from './engine-contender.ts';
import { caseContender, type ThroughDoor, taskContender } from './http-contender.ts';
import { type Contender, type Match, matchId, playMatch } from './match.ts';
import type { Report } from './report.ts';
import { verdictSettings } from './settings.ts';
import type { CaseSuite, Suite, TaskSuite } from './suite.ts';

type Agent = Config['agents'][number];

/** What an evaluation needs to know of a release. */
export type Contestant = {
  readonly name: string;
  /** Folder of its weights, where they are ours. */
  readonly checkpoint: string | null;
};

/** Whoever lends something takes it back when its use has ended, in whatever way. */
export type Play = {
  readonly withDoor: <T>(use: (door: Door) => Promise<T>) => Promise<T>;
  /** Without it, tasks go through the gateway too. */
  readonly withEngine?: <T>(use: (engine: Engine) => Promise<T>) => Promise<T>;
};

export type EvaluateReleases = {
  readonly agent: Agent;
  readonly store: Store;
  readonly suite: Suite<unknown>;
  readonly baseline: Contestant;
  readonly candidate: Contestant;
  readonly play: Play;
  /** Default: what the agent's file says. */
  readonly attempts?: number | undefined;
  readonly seed?: number | undefined; // 0
  readonly signal?: AbortSignal;
  readonly onProgress?: (played: number, total: number) => void;
};

export async function evaluateReleases(asked: EvaluateReleases): Promise<Report> {
  const { agent, store, suite, signal, onProgress } = asked;
  const { temperature } = agent.evaluate;
  if (asked.baseline.name === asked.candidate.name)
    throw new ConfigError(
      `Release ${asked.candidate.name} would be compared with itself; name another with --candidate or --baseline.`,
    );
  const rules = {
    agent: agent.name,
    suite,
    attempts: asked.attempts ?? agent.evaluate.attempts,
    seed: asked.seed ?? 0,
    temperature,
    settings: { ...verdictSettings(agent.evaluate), ...(usesReward(suite) ? { reward: agent.reward.version } : {}) },
    ...(signal ? { signal } : {}),
    ...(onProgress ? { onProgress } : {}),
  };
  const id = matchId({ ...rules, baseline: unplayed(asked.baseline), candidate: unplayed(asked.candidate) });
  const known = await readReport(store, id);
  if (known !== null && known.verdict !== 'unmeasured') return known;
  const report = await playReleases(asked, rules);
  await saveReport(store, report);
  // One that was saved meanwhile stands; what follows must be about the same.
  return (await readReport(store, id))!;
}

type Rules = Omit<Match, 'baseline' | 'candidate' | 'drift'>;

function playReleases({ agent, suite, baseline, candidate, play }: EvaluateReleases, rules: Rules): Promise<Report> {
  const { environment } = agent;
  const hasWeights = baseline.checkpoint !== null && candidate.checkpoint !== null;
  if (suite.kind === 'tasks' && environment !== undefined && hasWeights && play.withEngine !== undefined)
    return play.withEngine((engine) => playOnEngine(agent, engine, suite, baseline, candidate, rules));
  return play.withDoor((door) => playThroughDoor(agent, door, suite, baseline, candidate, rules));
}

async function playOnEngine(
  { environment, evaluate: { temperature } }: Agent,
  engine: Engine,
  suite: TaskSuite<unknown>,
  baseline: Contestant,
  candidate: Contestant,
  rules: Rules,
): Promise<Report> {
  // Names of its own: what else the engine serves comes and goes without regard to us.
  const models = { baseline: `evaluation-${baseline.name}`, candidate: `evaluation-${candidate.name}` };
  const on = { engine, environment: environment!, suite, temperature };
  const contender = async (role: keyof typeof models, { name, checkpoint }: Contestant) => {
    await engine.load(models[role], checkpoint!);
    return engineContender(on, { name, model: models[role], codec: await loadChatCodec(checkpoint!) });
  };
  try {
    const before = await contender('baseline', baseline);
    const after = await contender('candidate', candidate);
    const drift = () => after.driftFrom(models.baseline, rules.signal);
    return await playMatch({ ...rules, baseline: before, candidate: after, drift });
  } finally {
    const loaded = new Set((await engine.models()).map(({ name }) => name));
    for (const model of Object.values(models)) if (loaded.has(model)) await engine.unload(model);
  }
}

function playThroughDoor(
  agent: Agent,
  door: Door,
  suite: Suite<unknown>,
  baseline: Contestant,
  candidate: Contestant,
  rules: Rules,
): Promise<Report> {
  const { temperature, maxTokens, timeoutSeconds, concurrency } = agent.evaluate;
  const began = Date.now().toString(36);
  const contender = ({ name }: Contestant, role: string): Contender => {
    const through: ThroughDoor = {
      ...{ door, agent: agent.name, name, temperature, maxTokens, timeoutSeconds, concurrency },
      prefix: `evaluation-${began}-${role}`,
    };
    if (suite.kind === 'cases') return caseContender(through, agent.reward, suite);
    if (agent.environment !== undefined) return taskContender(through, agent.environment, suite);
    throw new ConfigError(
      `Suite ${suite.name} is of tasks, and agent ${agent.name} has no environment to play them in.`,
    );
  };
  return playMatch({ ...rules, baseline: contender(baseline, 'a'), candidate: contender(candidate, 'b') });
}

const usesReward = (suite: Suite<unknown>): boolean =>
  suite.kind === 'cases' && (suite satisfies CaseSuite).cases.some(({ expect }) => expect.score !== undefined);

const unplayed = ({ name }: Contestant): Contender => ({ name, play: async () => [] });
