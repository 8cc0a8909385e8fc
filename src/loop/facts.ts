/** Reads what `nextStep` has to know: one look at the database, cheap enough for every minute. Changes nothing. */
import type { Agent } from '../agent.ts';
import { isOpen, type Rollout } from '../deploy/rollout.ts';
import { engineWeights } from '../engine/open.ts';
import { listLoopTurns } from '../store/loop-turns.ts';
import { type Loop, readLoop, type Wanted } from '../store/loops.ts';
import { countNew, countScored } from '../store/new-traffic.ts';
import type { Store } from '../store/postgres.ts';
import { servingRelease } from '../store/releases.ts';
import { listRollouts, readRollout } from '../store/rollouts.ts';
import { postgresRunStore } from '../store/runs.ts';
import { ownerAlive } from '../train/owner.ts';
import { resultOf } from '../train/result.ts';
import { claimRefusal, type RunRecord } from '../train/run-record.ts';
import type { Spent } from '../train/stop.ts';
import type { Evidence, Facts } from './next-step.ts';
import { runId } from './parts.ts';
import { type LoopTurn, stageNames } from './turn.ts';

export type Known = {
  readonly turn: LoopTurn | null;
  readonly facts: Facts;
  /** What a person asked for who wants a turn. */
  readonly wanted: Wanted | null;
};

export async function readFacts(store: Store, agent: Agent, now: number): Promise<Known> {
  const turns = await listLoopTurns(store, agent.name, 20);
  const turn = turns[0] ?? null;
  const loop = await readLoop(store, agent.name);
  const underWay = turn !== null && turn.endedAt === null ? turn : null;
  const run = underWay === null ? null : await postgresRunStore(store).get(runId(underWay));
  const facts: Facts = {
    agent: agent.name,
    settings: agent.loop,
    since: loop?.since ?? now,
    paused: loop?.paused ?? null,
    wanted: loop?.wanted ?? null,
    missing: underWay === null ? await missingFor(store, agent) : null,
    evidence: underWay === null ? await evidenceOf(store, agent, turns, loop) : none,
    spent: underWay === null ? nothing : spentBy(underWay, run, agent.train.moneyPerHour ?? 0),
    failures: underWay === null ? [] : failuresOf(underWay, loop?.resumedAt ?? null),
    run: run === null ? null : await runFact(store, run, now),
    rollout: await rolloutFact(store, agent.name, underWay),
    canPractise: agent.environment !== undefined,
  };
  return { turn, facts, wanted: loop?.wanted ?? null };
}

const none: Evidence = { trajectories: 0, scored: 0, firstAt: null, lookedAt: null };
const nothing: Spent = { seconds: 0, tokens: 0, money: 0 };

/** Why a turn of this agent could come to nothing, with the way out. */
async function missingFor(store: Store, { name, train, evaluate }: Agent): Promise<string | null> {
  const serving = await servingRelease(store, name);
  if (serving === null)
    return `Agent ${name} has no release that serves, so there is nothing to be better than. Make one with \`pawl releases create\` and let it serve with \`pawl releases serve\`.`;
  if (engineWeights(serving) === null && train.base === undefined)
    return `There is nothing to train from: release ${serving.name} of agent ${name} is a model at upstream ${serving.upstream}, and the agent's file names no \`train.base\`.`;
  if (evaluate.golden === undefined)
    return `There is nothing to judge a candidate by: the file of agent ${name} names no \`evaluate.golden\`.`;
  return null;
}

/** Where the last turn's window ended, whatever became of it: what came before has had its chance to begin a turn. */
const lastWindowEnd = (turns: readonly LoopTurn[]): number =>
  turns.find(({ state }) => state.collect !== undefined)?.state.collect?.until ?? 0;

/** Where the next window begins: what came in the window of a turn that made no dataset is still to be learned from. */
export const nextWindowStart = (turns: readonly LoopTurn[]): number =>
  turns.find(({ state }) => state.curate !== undefined && state.curate.nothing === undefined)?.state.collect?.until ??
  0;

async function evidenceOf(
  store: Store,
  { name, curate, reward, loop: { after } }: Agent,
  turns: readonly LoopTurn[],
  loop: Loop | null,
): Promise<Evidence> {
  const asked = { agent: name, origin: curate.on, since: lastWindowEnd(turns), most: after?.scored ?? 1 };
  const came = await countNew(store, asked);
  // Scores are counted only where they could be enough.
  const isWorthIt = after !== null && came.trajectories >= after.scored;
  const scored = isWorthIt ? await countScored(store, { ...asked, spec: reward.version }) : 0;
  return { ...came, scored, lookedAt: loop?.lookedAt ?? null };
}

/** What a turn has used up. A run knows its own time even if the process that trained it was killed. */
export function spentBy(
  { state: { seconds = {} } }: Pick<LoopTurn, 'state'>,
  run: Pick<RunRecord, 'spent'> | null,
  moneyPerHour: number,
): Spent {
  // How long users try a candidate costs nothing.
  const { train = 0, deploy: _, ...others } = seconds;
  const worked = Object.values(others).reduce((sum, n) => sum + n, Math.max(train, run?.spent.seconds ?? 0));
  return { seconds: worked, tokens: run?.spent.tokens ?? 0, money: (worked / 3600) * moneyPerHour };
}

function failuresOf({ done, state }: LoopTurn, resumedAt: number | null): Facts['failures'] {
  const at = stageNames.find((stage) => !done.includes(stage));
  return (state.failures ?? []).filter((one) => one.stage === at && one.at > (resumedAt ?? 0));
}

async function runFact(store: Store, run: RunRecord, now: number): Promise<Facts['run']> {
  const { id } = run;
  const elsewhere = run.status === 'finished' ? null : claimRefusal(run, now, ownerAlive);
  if (elsewhere !== null) return { id, state: 'elsewhere', sentence: elsewhere };
  const result = resultOf(run, await postgresRunStore(store).checkpoints(id));
  return { id, state: result.kind, sentence: 'sentence' in result ? result.sentence : `Run ${id} is ${run.status}.` };
}

async function rolloutFact(store: Store, agent: string, turn: LoopTurn | null): Promise<Facts['rollout']> {
  const fact = ({ id, phase, reasons }: Rollout, isOfTurn: boolean) => ({ id, phase, reasons, isOfTurn });
  const own = turn === null ? null : await readRollout(store, runId(turn));
  if (own !== null) return fact(own, true);
  const [other] = await listRollouts(store, { agent, open: true, limit: 1 });
  return other && isOpen(other) ? fact(other, false) : null;
}
