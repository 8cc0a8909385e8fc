/**
 * Evaluates a candidate against a baseline, both releases of one agent, on one suite, and keeps the report. Tasks of an
 * environment are played on the engine where both have weights of their own, since only there exact tokens are known; all
 * else goes through the gateway.
 *
 * A report's id says what was asked, so an evaluation that was killed is simply run again, and one that was answered is not
 * played twice. One that could not be measured is.
 */
import type { Artifacts } from '../artifacts/artifacts.ts';
import { audit } from '../audit.ts';
import type { Config } from '../config.ts';
import { readModelFiles } from '../engine/checkpoint.ts';
import type { Engine } from '../engine/engine.ts';
import { engineUpstream } from '../engine/open.ts';
import { ConfigError } from '../errors.ts';
import { openJudge } from '../score/ask-open.ts';
import { loadChatCodec } from '../simulate/chat-codec.ts';
import type { Store } from '../store/postgres.ts';
import { readReport, saveReport } from '../store/reports.ts';
import { checkCompatibility, neededOf, serverOf } from './check-compatibility.ts';
import { compatibilityGate } from './compatibility.ts';
import type { Door } from './door.ts';
import { measureDriftThrough, type WrittenTokens } from './drift.ts';
import { embedAnswers } from './embed.ts';
import { type EngineContender, engineContender } from './engine-contender.ts';
import { caseContender, type Rewarded, type ThroughDoor, taskContender } from './http-contender.ts';
import { environmentMark, keptContender, partOf } from './kept-contender.ts';
import { type Beside, type Contender, type Match, matchId, playMatch } from './match.ts';
import { type Perturbation, perturbations, perturbCase, perturbTools, perturbUsers } from './perturb.ts';
import type { Report } from './report.ts';
import { verdictSettings } from './settings.ts';
import { type CaseSuite, entriesOf, type Suite, type TaskSuite } from './suite.ts';

type Agent = Config['agents'][number];

/** What an evaluation needs to know of a release. */
export type Contestant = {
  readonly name: string;
  /** Who serves it. */
  readonly upstream: string;
  /** Its weights, where they are ours: a reference, or a folder. */
  readonly checkpoint: string | null;
  /** It learned from what is confidential: what it says goes to no server outside the deployment. */
  readonly internal: boolean;
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
  /** Where the weights are that a release refers to. */
  readonly artifacts: Pick<Artifacts, 'folder'>;
  readonly upstreams: Config['upstreams'];
  readonly suite: Suite<unknown>;
  readonly baseline: Contestant;
  readonly candidate: Contestant;
  /** What the candidate's line began with, where that is neither of the two. */
  readonly base?: Contestant | undefined;
  /** Of what must not be forgotten. */
  readonly broad?: Suite<unknown> | undefined;
  /** What answers are judged by, in words. */
  readonly rubric?: string | undefined;
  readonly play: Play;
  /** Default: what the agent's file says. */
  readonly attempts?: number | undefined;
  readonly seed?: number | undefined; // 0
  /** Who asks; stands in the audit log. */
  readonly by?: string | undefined; // pawl
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
    settings: {
      ...verdictSettings(agent.evaluate),
      ...(usesReward(suite) ? { reward: agent.reward.version } : {}),
      ...(agent.evaluate.compatibility === undefined ? {} : { compatibility: agent.evaluate.compatibility }),
      ...(agent.evaluate.embeddings === undefined ? {} : { embeddings: agent.evaluate.embeddings }),
      ...(asked.broad === undefined ? {} : { broad: asked.broad.hash }),
      ...(asked.base === undefined ? {} : { base: asked.base.name }),
      ...(asked.rubric === undefined ? {} : { rubric: asked.rubric }),
    },
    ...(asked.rubric === undefined ? {} : { gated: { rubric: asked.rubric } }),
    ...(signal ? { signal } : {}),
    ...(onProgress ? { onProgress } : {}),
  };
  const id = matchId({ ...rules, baseline: unplayed(asked.baseline), candidate: unplayed(asked.candidate) });
  const known = await readReport(store, id);
  if (known !== null && known.verdict !== 'unmeasured') return known;
  const { embedding } = agent;
  const report = await playReleases(asked, {
    ...rules,
    beside: (played) => playBeside(asked, rules, played),
    ...(embedding === undefined
      ? {}
      : {
          embed: (cases) =>
            embedAnswers(cases, embedding, { internal: asked.baseline.internal || asked.candidate.internal, signal }),
        }),
  });
  await keepReport(store, report, asked.by ?? 'pawl');
  // One that was saved meanwhile stands; what follows must be about the same.
  return (await readReport(store, id))!;
}

/** The report and who asked for it, together. */
const keepReport = (store: Store, report: Report, actor: string): Promise<void> =>
  store.db.transaction().execute(async (db) => {
    if (!(await saveReport({ db }, report))) return;
    const { id, agent, baseline, candidate, verdict, reasons, attempts, seed, createdAt } = report;
    const suite = { name: report.suite.name, hash: report.suite.hash };
    const details = { baseline, candidate, verdict, reasons, suite, attempts, seed };
    await audit(db, { agent, actor, event: 'evaluation-ended', subject: id, details, at: createdAt });
  });

type Rules = Omit<Match, 'baseline' | 'candidate' | 'drift'>;

/** The broad suite, and cases of this one said differently: both by the same two releases, with the same seeds. */
async function playBeside(
  asked: EvaluateReleases,
  { onProgress: _, ...rules }: Rules,
  played: Report['tasks'],
): Promise<Beside> {
  const { broad, suite, agent } = asked;
  const play = (other: Suite<unknown>, environment = agent.environment) =>
    playReleases({ ...asked, suite: other, agent: { ...agent, environment } }, { ...rules, suite: other });
  const { compatibility: wanted } = agent.evaluate;
  const compatibility =
    wanted === undefined
      ? null
      : await asked.play.withDoor(async (door) => {
          const { store, upstreams, candidate, baseline } = asked;
          const of = {
            ...{ agent: agent.name, release: candidate.name, serving: baseline.name },
            ...{ needs: (await neededOf(store, upstreams, agent, candidate, Date.now()))! },
            ...{ server: serverOf(upstreams, candidate), door, by: asked.by ?? 'pawl', signal: rules.signal },
          };
          return compatibilityGate(await checkCompatibility(asked.store, of));
        });
  let found: Beside['broad'] = null;
  if (broad !== undefined) {
    const { overall } = await play(broad);
    if (overall !== null) found = { suite: broad.name, hash: broad.hash, comparison: overall };
  }
  const count = Math.min(agent.evaluate.perturbed, entriesOf(suite).length);
  // An agent of one's own opens its conversations itself.
  if (count === 0 || agent.environment?.agent !== undefined) return { broad: found, perturbed: null, compatibility };
  const kindOf = (i: number): Perturbation => perturbations[i % perturbations.length]!;
  const part: Suite<unknown> = {
    ...partOf(
      suite,
      Array.from({ length: count }, (__, i) => i),
    ),
    variant: 'said differently',
  };
  const kinds = new Map(entriesOf(part).map(({ id }, i) => [id, kindOf(i)]));
  const said =
    part.kind === 'cases'
      ? (await play({ ...part, cases: part.cases.map((one, i) => perturbCase(kindOf(i), one)) })).tasks
      : await playPerturbedTasks(part, agent, kindOf, kinds, play);
  const byId = new Map(said.map((task) => [task.id, task]));
  const perturbed = played.slice(0, count).flatMap(({ id, baseline, candidate }) => {
    const other = byId.get(id);
    return baseline === null || candidate === null || other?.baseline == null || other.candidate === null
      ? []
      : [
          {
            ...{ id, kind: kinds.get(id)! },
            baseline: { original: baseline, perturbed: other.baseline },
            candidate: { original: candidate, perturbed: other.candidate },
          },
        ];
  });
  return { broad: found, perturbed, compatibility };
}

async function playPerturbedTasks(
  part: TaskSuite<unknown>,
  { environment }: Agent,
  kindOf: (i: number) => Perturbation,
  kinds: ReadonlyMap<string, Perturbation>,
  play: (suite: Suite<unknown>, environment: Agent['environment']) => Promise<Report>,
): Promise<Report['tasks']> {
  const of = (isTools: boolean) =>
    partOf(
      part,
      part.tasks.flatMap((_, i) => ((kindOf(i) === 'tools') === isTools ? [i] : [])),
    );
  const users = await play(
    of(false),
    perturbUsers(environment!, (id) => kinds.get(id) ?? 'tools'),
  );
  const tools = entriesOf(of(true)).length === 0 ? null : await play(of(true), perturbTools(environment!));
  return [...users.tasks, ...(tools?.tasks ?? [])];
}

function playReleases(asked: EvaluateReleases, rules: Rules): Promise<Report> {
  const { agent, suite, baseline, candidate, play } = asked;
  const { environment } = agent;
  const hasWeights = baseline.checkpoint !== null && candidate.checkpoint !== null;
  if (suite.kind === 'tasks' && environment !== undefined && hasWeights && play.withEngine !== undefined)
    return play.withEngine((engine) => playOnEngine(asked, engine, suite, rules));
  const rewarded = { reward: agent.reward, services: { judge: openJudge(asked.store, agent) } };
  return play.withDoor((door) => playThroughDoor(asked, door, rewarded, rules));
}

/** What decides an answer, beside the release, the case, the attempts and the seed. */
const howOf = ({ evaluate, environment, reward }: Agent, suite: Suite<unknown>, on: 'engine' | 'gateway') => ({
  on,
  suite: suite.kind === 'tasks' ? environmentMark(environment) : null,
  variant: suite.variant ?? null,
  temperature: evaluate.temperature,
  maxTokens: evaluate.maxTokens ?? null,
  reward: suite.kind === 'cases' ? reward.version : null,
});

async function playOnEngine(
  { agent, store, artifacts, baseline, candidate, ...asked }: EvaluateReleases,
  engine: Engine,
  suite: TaskSuite<unknown>,
  rules: Rules,
): Promise<Report> {
  const { temperature } = agent.evaluate;
  const environment = agent.environment!;
  // What is played beside the suite drifts no further.
  const base = rules.beside === undefined ? undefined : asked.base;
  // Names of its own: what else the engine serves comes and goes without regard to us.
  const models = {
    baseline: `evaluation-${baseline.name}`,
    candidate: `evaluation-${candidate.name}`,
    ...(base === undefined ? {} : { base: `evaluation-${base.name}` }),
  };
  let last: EngineContender | null = null;
  const folderOf = ({ checkpoint }: Contestant) => artifacts.folder(checkpoint!);
  const contender = async (role: 'baseline' | 'candidate', release: Contestant): Promise<Contender> => {
    const folder = await folderOf(release);
    await engine.load(models[role], folder);
    const codec = await loadChatCodec(folder);
    // The candidate plays all of it: how far it has drifted is told by its tokens, and those are not kept.
    const kept = {
      store,
      agent: agent.name,
      release,
      suite,
      how: howOf(agent, suite, 'engine'),
      reuse: role === 'baseline',
    };
    return keptContender(kept, (part) => {
      const on = { engine, environment, suite: part as TaskSuite<unknown>, temperature };
      last = engineContender(on, { name: release.name, model: models[role], codec });
      return last;
    });
  };
  try {
    const before = await contender('baseline', baseline);
    const after = await contender('candidate', candidate);
    const from = async (other: Contestant, model: string) =>
      (await haveSameTokens(await folderOf(candidate), await folderOf(other)))
        ? ((await last?.driftFrom(model, rules.signal)) ?? null)
        : null;
    const fromBase = async (release: Contestant) => {
      if (release.checkpoint === null) return null;
      await engine.unload(models.candidate); // it has played, and three are many
      await engine.load(models.base!, await folderOf(release));
      return from(release, models.base!);
    };
    return await playMatch({
      ...{ ...rules, baseline: before, candidate: after, drift: () => from(baseline, models.baseline) },
      ...(base === undefined ? {} : { base: { release: base.name, drift: () => fromBase(base) } }),
    });
  } finally {
    const loaded = new Set((await engine.models()).map(({ name }) => name));
    for (const model of Object.values(models)) if (loaded.has(model)) await engine.unload(model);
  }
}

/** What one wrote says nothing to a model that cuts text otherwise. */
async function haveSameTokens(one: string, other: string): Promise<boolean> {
  const [of, ofOther] = await Promise.all(
    [one, other].map(async (folder) => (await readModelFiles(folder)).get('tokenizer.json')),
  );
  return of !== undefined && ofOther !== undefined && Buffer.compare(of, ofOther) === 0;
}

/** Whether a server says which tokens it wrote: Pawl's own, vLLM, and one that is asked for them anyway. */
const saysTokens = (upstreams: Config['upstreams'], { upstream }: Contestant): boolean =>
  upstream === engineUpstream ||
  upstreams[upstream]?.adapters?.kind === 'vllm' ||
  upstreams[upstream]?.defaults.return_token_ids === true;

function playThroughDoor(
  { agent, store, suite, baseline, candidate, upstreams, ...asked }: EvaluateReleases,
  door: Door,
  rewarded: Rewarded,
  rules: Rules,
): Promise<Report> {
  const { temperature, maxTokens, timeoutSeconds, concurrency } = agent.evaluate;
  const began = Date.now().toString(36);
  if (suite.kind === 'tasks' && agent.environment === undefined)
    throw new ConfigError(
      `Suite ${suite.name} is of tasks, and agent ${agent.name} has no environment to play them in.`,
    );
  // What is written at another temperature says neither how far a model has drifted nor how much it considers (drift.ts).
  const isAsked = rules.beside !== undefined && temperature === 1;
  const tokens = isAsked && saysTokens(upstreams, baseline) && saysTokens(upstreams, candidate);
  let written: readonly WrittenTokens[] = [];
  const contender = (release: Contestant, role: 'a' | 'b'): Contender => {
    const through: ThroughDoor = {
      ...{ door, agent: agent.name, name: release.name, temperature, maxTokens, timeoutSeconds, concurrency, tokens },
      prefix: `evaluation-${began}-${role}`,
    };
    const how = { ...howOf(agent, suite, 'gateway'), ...(tokens ? { tokens } : {}) };
    // As on the engine: what a candidate wrote in tasks is not kept token by token.
    const reuse = role === 'a' || suite.kind === 'cases' || !tokens;
    const kept = { store, agent: agent.name, release, suite, how, reuse };
    const contend = keptContender(kept, (part) =>
      part.kind === 'cases'
        ? caseContender(through, rewarded, part)
        : taskContender(through, agent.environment!, part, (all) => {
            if (role === 'b') written = all;
          }),
    );
    if (role === 'a' || suite.kind === 'tasks') return contend;
    return {
      name: contend.name,
      async play(playing) {
        const played = await contend.play(playing);
        written = played.flatMap(([first]) => first?.tokens ?? []);
        return played;
      },
    };
  };
  const behind = { ...door, agent: agent.name, timeoutSeconds, concurrency };
  const from = async (release: Contestant) =>
    tokens && mayBeTold(upstreams, release, candidate)
      ? measureDriftThrough({ ...behind, release: release.name }, written, rules.signal)
      : null;
  const base = rules.beside === undefined ? undefined : asked.base;
  return playMatch({
    ...{ ...rules, baseline: contender(baseline, 'a'), candidate: contender(candidate, 'b') },
    drift: () => from(baseline),
    ...(base === undefined ? {} : { base: { release: base.name, drift: () => from(base) } }),
  });
}

/** Whether a release's server may read what the candidate wrote, who may have learned from what is confidential. */
const mayBeTold = (upstreams: Config['upstreams'], { upstream }: Contestant, { internal }: Contestant): boolean =>
  !internal || upstream === engineUpstream || upstreams[upstream]?.inside === true;

const usesReward = (suite: Suite<unknown>): boolean =>
  suite.kind === 'cases' && (suite satisfies CaseSuite).cases.some(({ expect }) => expect.score !== undefined);

const unplayed = ({ name }: Pick<Contestant, 'name'>): Contender => ({ name, play: async () => [] });
