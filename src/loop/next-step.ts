/**
 * What the loop does next: a pure function of the newest turn, of what is known, and of the time. It is asked again after
 * everything it said was done, and whenever something may have changed; whoever asks it (loop.ts) needs no memory.
 *
 * The first line that applies decides.
 *
 *   No turn under way
 *     paused by a person                                → wait
 *     nothing to train from, or nothing to judge by     → wait: no turn could come to anything
 *     a rollout is under way                            → wait: what serves is not settled
 *     a person asked for a turn                         → begin
 *     the schedule is due, and something came since     → begin
 *     enough new trajectories have a score              → begin
 *     enough new ones came to look for scores           → run score, at most once an hour
 *     otherwise                                         → wait for the next time by the schedule, or the next look
 *
 *   A turn under way, at its first stage that is not done
 *     paused by a person                                → wait
 *     its rollout waits for a person                    → ask
 *     its rollout is with the users                     → wait: traffic moves it, and deploy/watch-rollouts.ts
 *     its run was paused by a person                    → ask
 *     its run is trained elsewhere                      → wait
 *     its run was stopped                               → end
 *     the budget is spent (not once users have it)      → end
 *     the stage failed more often than is retried       → ask
 *     the stage failed                                  → wait: 1, 2, 4 … minutes, at most an hour
 *     nothing was kept to learn from, nor is practised  → end
 *     what was kept is not ready to be trained on       → end
 *     another rollout of the agent is under way         → wait before deploying
 *     otherwise                                         → run the stage
 *
 * `wait` with `until: null` means that no time changes it: only something that the database announces does.
 */
import type { Phase } from '../deploy/rollout.ts';
import type { Spent } from '../train/stop.ts';
import { type LoopSettings, periodOf } from './settings.ts';
import { type LoopTurn, type StageName, stageNames } from './turn.ts';

export type Trigger = 'schedule' | 'evidence' | 'person';

export type Wait = { readonly kind: 'wait'; readonly until: number | null; readonly reason: string };
export type Ask = {
  readonly kind: 'ask';
  readonly question: string;
  /** What answers it. */
  readonly command: string;
  readonly reason: string;
};
export type Next =
  | Wait
  | Ask
  | { readonly kind: 'run'; readonly stage: StageName; readonly reason: string }
  | { readonly kind: 'begin'; readonly trigger: Trigger; readonly reason: string }
  | { readonly kind: 'end'; readonly reason: string };

/** What has come since the last turn's window ended. Counts stop at what `after` asks for: more makes no difference. */
export type Evidence = {
  readonly trajectories: number;
  readonly scored: number;
  /** When the first of them began. */
  readonly firstAt: number | null;
  /** When they were last scored outside a turn. */
  readonly lookedAt: number | null;
};

export type Facts = {
  readonly agent: string;
  readonly settings: LoopSettings;
  /** Times by the schedule are counted from here. */
  readonly since: number;
  readonly paused: { readonly at: number; readonly by: string } | null;
  /** A person asked for a turn that has not begun. */
  readonly wanted: { readonly at: number; readonly by: string } | null;
  /** Why no turn could come to anything. */
  readonly missing: string | null;
  readonly evidence: Evidence;
  /** By the turn under way. */
  readonly spent: Spent;
  /** Of the stage that the turn is at, oldest first, since a person last said to try again. */
  readonly failures: readonly { readonly at: number; readonly reason: string }[];
  /** Of the turn's training run. */
  readonly run: {
    readonly id: string;
    readonly state: 'open' | 'held' | 'stopped' | 'elsewhere' | 'finished';
    readonly sentence: string;
  } | null;
  /** The turn's own rollout in whatever phase, else one of the agent that has not ended. */
  readonly rollout: {
    readonly id: string;
    readonly isOfTurn: boolean;
    readonly phase: Phase;
    readonly reasons: readonly string[];
  } | null;
  /** Whether there is an environment to practise in. */
  readonly canPractise: boolean;
};

const minute = 60_000;
const hour = 60 * minute;
/** How often new traffic is counted. */
const lookEveryMs = minute;
/** How often it is scored where that may lead to a turn. */
const scoreEveryMs = hour;

/** `turn` is the agent's newest. */
export function nextStep(turn: LoopTurn | null, facts: Facts, now: number): Next {
  return turn === null || turn.endedAt !== null ? between(turn, facts, now) : within(turn, facts, now);
}

function between(last: LoopTurn | null, facts: Facts, now: number): Next {
  const { agent, settings, paused, wanted, missing, evidence, rollout } = facts;
  const { every, after } = settings;
  if (paused !== null) return wait(null, pausedReason(agent, paused));
  if (missing !== null) return wait(null, missing);
  if (rollout !== null && isUnderWay(rollout.phase))
    return wait(null, `Rollout ${rollout.id} is ${rollout.phase}; the next turn begins from what serves after it.`);
  if (wanted !== null) return begin('person', `${wanted.by} asked for it.`);

  const slots = slotsOf(facts.since, periodOf(every), now);
  const isDue = slots !== null && slots.last !== null && (last === null || last.startedAt < slots.last);
  const isSkipped = isDue && (evidence.firstAt === null || evidence.firstAt >= slots.last!);
  if (isDue && !isSkipped) return begin('schedule', `It is due every ${every}, since ${at(slots.last!)}.`);

  if (after !== null && evidence.scored >= after.scored)
    return begin('evidence', `${after.scored} new trajectories have a score.`);
  if (after !== null && evidence.trajectories >= after.scored) {
    const again = evidence.lookedAt === null ? now : evidence.lookedAt + scoreEveryMs;
    if (again <= now) return run('score', `${after.scored} new trajectories came; how many of them can be scored?`);
  }

  const until = earliest(slots?.next ?? null, after === null ? null : now + lookEveryMs);
  const came = `${evidence.scored} of ${evidence.trajectories} new trajectories have a score`;
  const reasons = [
    ...(isSkipped ? [`Nothing had come by ${at(slots.last!)}, so that turn was left out.`] : []),
    ...(slots === null ? [] : [`The next turn by the clock is due at ${at(slots.next)}.`]),
    ...(after === null ? [] : [`${came}; ${after.scored} begin a turn.`]),
    ...(until === null ? [`Turns begin by hand: \`pawl loop run --agent ${agent}\`.`] : []),
  ];
  return wait(until, reasons.join(' '));
}

function within(turn: LoopTurn, facts: Facts, now: number): Next {
  const { agent, settings, paused, failures, run: training, rollout, canPractise } = facts;
  const stage = stageNames.find((name) => !turn.done.includes(name));
  if (stage === undefined) throw new Error(`Turn ${turn.number} of ${agent} has done every stage and not ended.`);
  if (paused !== null) return wait(null, pausedReason(agent, paused));

  const own = stage === 'deploy' && rollout?.isOfTurn ? rollout : null;
  if (own !== null && (own.phase === 'waiting' || own.phase === 'paused'))
    return ask(
      `Shall ${own.id} go on?`,
      `pawl rollouts approve ${own.id}`,
      `Rollout ${own.id} is ${own.phase}: ${own.reasons.join(' ')} Decide with \`pawl rollouts approve ${own.id}\` or \`pawl rollouts abort ${own.id}\`.`,
    );
  if (own?.phase === 'canary')
    return wait(null, `Rollout ${own.id} is with the users; their traffic moves it on. ${own.reasons.join(' ')}`);

  if (stage === 'train' && training !== null) {
    if (training.state === 'held')
      return ask(
        `Shall run ${training.id} go on?`,
        `pawl loop resume --agent ${agent}`,
        `${training.sentence} Go on with it by \`pawl loop resume --agent ${agent}\`, or train on with \`pawl runs resume ${training.id}\`.`,
      );
    if (training.state === 'elsewhere') return wait(now + minute, training.sentence);
    if (training.state === 'stopped')
      return end(`${training.sentence} There is no candidate; the users stay where they are.`);
  }

  const over = own === null ? overBudget(facts) : null;
  if (over !== null) return end(`${over} The users stay where they are.`);

  const last = failures.at(-1);
  if (last !== undefined && failures.length > settings.retries)
    return ask(
      `Shall ${stage} be tried again?`,
      `pawl loop resume --agent ${agent}`,
      `Stage ${stage} failed ${times(failures.length)}, the last time with: ${last.reason} Try again with \`pawl loop resume --agent ${agent}\`.`,
    );
  if (last !== undefined && now < last.at + backoff(failures.length))
    return wait(
      last.at + backoff(failures.length),
      `Stage ${stage} failed (${times(failures.length)} so far) and is tried again: ${last.reason}`,
    );

  if (stage === 'train' && turn.state.curate?.nothing !== undefined && !canPractise)
    return end(turn.state.curate.nothing);
  if (stage === 'train' && turn.state.curate?.unready !== undefined) return end(turn.state.curate.unready);
  if (stage === 'deploy' && own === null && rollout !== null && isUnderWay(rollout.phase))
    return wait(null, `Rollout ${rollout.id} of this agent has not ended; the candidate of this turn comes after it.`);
  return run(stage, own === null ? `Turn ${turn.number} is at ${stage}.` : `Rollout ${own.id} was ${own.phase}.`);
}

const isUnderWay = (phase: Phase): boolean => phase === 'waiting' || phase === 'canary' || phase === 'paused';

/** The time after the nth failure in a row. */
export const backoff = (failures: number): number => Math.min(minute * 2 ** Math.min(failures - 1, 10), hour);

/** The times by the schedule around now: the last one that has come, and the next. */
function slotsOf(since: number, period: number | null, now: number): { last: number | null; next: number } | null {
  if (period === null) return null;
  const passed = Math.max(0, Math.floor((now - since) / period));
  return { last: passed === 0 ? null : since + passed * period, next: since + (passed + 1) * period };
}

/** What is left for the rest of the turn; null: without end. */
export function budgetLeft({ settings: { budget }, spent }: Pick<Facts, 'settings' | 'spent'>): {
  readonly seconds: number;
  readonly tokens: number | null;
  readonly money: number | null;
} {
  const left = (most: number | undefined, used: number) => (most === undefined ? null : Math.max(0, most - used));
  return {
    seconds: Math.max(0, budget.hours * 3600 - spent.seconds),
    tokens: left(budget.tokens, spent.tokens),
    money: left(budget.money, spent.money),
  };
}

function overBudget(facts: Facts): string | null {
  const { budget } = facts.settings;
  const { seconds, tokens, money } = budgetLeft(facts);
  if (seconds === 0) return `The turn's budget of ${budget.hours} h is spent.`;
  if (tokens === 0) return `The turn's budget of ${budget.tokens} tokens is spent.`;
  if (money === 0) return `The turn's budget of ${budget.money} in money is spent.`;
  return null;
}

const earliest = (a: number | null, b: number | null): number | null =>
  a === null ? b : b === null ? a : Math.min(a, b);
const at = (time: number): string => new Date(time).toISOString().slice(0, 16).replace('T', ' ');
const times = (n: number): string => (n === 1 ? 'once' : n === 2 ? 'twice' : `${n} times`);
const pausedReason = (agent: string, { at: when, by }: NonNullable<Facts['paused']>): string =>
  `Paused by ${by} at ${at(when)}; go on with \`pawl loop resume --agent ${agent}\`.`;

const wait = (until: number | null, reason: string): Next => ({ kind: 'wait', until, reason });
const ask = (question: string, command: string, reason: string): Next => ({ kind: 'ask', question, command, reason });
const run = (stage: StageName, reason: string): Next => ({ kind: 'run', stage, reason });
const begin = (trigger: Trigger, reason: string): Next => ({ kind: 'begin', trigger, reason });
const end = (reason: string): Next => ({ kind: 'end', reason });
