/** An agent's loop at a glance: what `GET /api/overview` and `pawl overview` show. */
import type { Agent } from '../agent.ts';
import { foundUnfit, unfitCommand } from '../deploy/fit.ts';
import { readFacts } from '../loop/facts.ts';
import { nextStep } from '../loop/next-step.ts';
import type { Progress } from '../loop/runner.ts';
import { type LoopTurn, stageNames } from '../loop/turn.ts';
import { type Go, goOf, type Money, moneyOf } from '../loop/worth.ts';
import { dueAt } from '../privacy/erasure.ts';
import { readWaiting } from '../review/queue.ts';
import { listErasures } from '../store/erasures.ts';
import { listLoopTurns } from '../store/loop-turns.ts';
import { countStages, mostCounted, type StageCounts } from '../store/overview.ts';
import type { Store } from '../store/postgres.ts';
import { listReviewItems } from '../store/review.ts';

/** Something that needs a person now. */
export type NeedsPerson = {
  readonly kind: 'loop' | 'rollout' | 'report' | 'review' | 'erasure' | 'release';
  /** Of what it is about; null: of several. */
  readonly id: string | null;
  readonly sentence: string;
  readonly command: string;
};

export type Gain = {
  readonly turn: number;
  readonly endedAt: number | null;
  readonly before: number;
  readonly after: number;
  readonly interval: readonly [number, number];
  readonly verdict: string;
  readonly promoted: boolean;
  readonly money: number;
};

export type Overview = {
  readonly agent: string;
  readonly loop: {
    readonly turn: number | null;
    /** The stage it is at; null between turns. */
    readonly stage: (typeof stageNames)[number] | null;
    readonly done: readonly string[];
    readonly next: { readonly kind: string; readonly reason: string };
    readonly paused: boolean;
    readonly progress: Progress | null;
  };
  readonly stages: StageCounts & { readonly most: number };
  readonly waiting: readonly NeedsPerson[];
  readonly gains: readonly Gain[];
  readonly go: Go;
  readonly money: Money;
  /** Of all that ended; null: none did. */
  readonly deploymentsSucceeded: number | null;
  readonly evaluationsPassed: number | null;
};

const mostReview = 200;

const gainOf = ({ number, endedAt, state }: LoopTurn): Gain[] => {
  const { evaluate, deploy, spent } = state;
  if (evaluate === undefined) return [];
  const { before, after, interval, verdict } = evaluate;
  const promoted = deploy?.phase === 'promoted';
  return [{ turn: number, endedAt, before, after, interval, verdict, promoted, money: spent?.money ?? 0 }];
};

const share = (part: number, whole: number): number | null => (whole === 0 ? null : part / whole);

export async function readOverview(
  store: Store,
  agent: Agent,
  now: Date,
  progress: (agent: string) => Promise<Progress | null> = async () => null,
): Promise<Overview> {
  const { name } = agent;
  const [{ turn, facts }, turns, stages, waiting, items, erasures, doing, unfit] = await Promise.all([
    readFacts(store, agent, now.getTime()),
    listLoopTurns(store, name, 100),
    countStages(store, { agent: name, origin: agent.curate.on, spec: agent.reward.version, now }),
    readWaiting(store, name),
    listReviewItems(store, { agent: name, reviewers: agent.review.reviewers, limit: mostReview }),
    listErasures(store, { limit: 100 }),
    progress(name),
    foundUnfit(store, name),
  ]);
  const next = nextStep(turn, facts, now.getTime());
  const overdue = erasures.filter((one) => one.status !== 'done' && dueAt(one) < now.getTime() + 86_400_000);
  const needs: NeedsPerson[] = [
    ...(next.kind === 'ask'
      ? [{ kind: 'loop' as const, id: name, sentence: next.question, command: next.command }]
      : []),
    ...(unfit === null
      ? []
      : [
          {
            kind: 'release' as const,
            id: unfit.release.name,
            sentence: unfit.sentence,
            command: unfitCommand(unfit.release),
          },
        ]),
    ...waiting.map(({ kind, id, reasons, command }) => ({
      ...{ kind, id, command, sentence: reasons[0] ?? `${kind === 'report' ? 'Report' : 'Rollout'} ${id} waits.` },
    })),
    ...(items.length === 0
      ? []
      : [
          {
            ...{ kind: 'review' as const, id: null, command: `pawl review next --agent ${name}` },
            sentence: `${items.length === mostReview ? `${mostReview} or more` : items.length} conversations wait for a reviewer.`,
          },
        ]),
    ...overdue.map(({ id }) => ({
      ...{ kind: 'erasure' as const, id, command: 'pawl erase list' },
      sentence: `Erasure ${id} must be done within a day.`,
    })),
  ];
  const worth = {
    ...{ traces: stages.traces, golden: stages.golden, judgingMoney: stages.judgingMoney },
    turns: turns.map(({ state: { evaluate, deploy, spent } }) => ({
      promoted: deploy?.phase === 'promoted',
      gain: evaluate === undefined ? null : evaluate.after - evaluate.before,
      money: spent?.money ?? 0,
    })),
    conversationsPerWeek: stages.conversations.week,
    successWorth: agent.loop.successWorth ?? null,
    moneyPerHour: agent.train.moneyPerHour ?? null,
  };
  const money = moneyOf(worth);
  const { promoted, rolledBack } = stages.rollouts;
  const underWay = turn !== null && turn.endedAt === null ? turn : null;
  return {
    agent: name,
    loop: {
      turn: turn?.number ?? null,
      stage: underWay === null ? null : (stageNames.find((stage) => !underWay.done.includes(stage)) ?? null),
      done: turn?.done ?? [],
      next: { kind: next.kind, reason: next.reason },
      paused: facts.paused !== null,
      progress: doing,
    },
    stages: { ...stages, most: mostCounted },
    waiting: needs,
    gains: turns.flatMap(gainOf).toReversed(),
    go: goOf(worth, money),
    money,
    deploymentsSucceeded: share(promoted, promoted + rolledBack),
    evaluationsPassed: share(stages.reports.passed, stages.reports.ended),
  };
}

/** As it goes over the wire, and out of `pawl overview --json`. */
export function overviewJson(found: Overview) {
  const { agent, deploymentsSucceeded, evaluationsPassed, gains, waiting, go, money, loop } = found;
  const { serving, ...stages } = found.stages;
  return {
    ...{ agent, loop: { ...loop, done: [...loop.done] }, stages, waiting: [...waiting] },
    serving: serving && { ...serving, since: serving.since.toISOString() },
    gains: gains.map(({ endedAt, interval, ...gain }) => ({
      ...{ ...gain, interval: [...interval], endedAt: endedAt === null ? null : new Date(endedAt).toISOString() },
    })),
    go: { ...go, checks: [...go.checks] },
    money: { ...money, unmeasured: [...money.unmeasured], deploymentsSucceeded, evaluationsPassed },
  };
}
