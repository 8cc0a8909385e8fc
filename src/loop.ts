/**
 * The loop: collect → score → curate → train → evaluate → deploy, and round again.
 *
 * One turn of it is a row in the database (loop/turn.ts). What comes next is a question that a pure function answers
 * (loop/next-step.ts); this file asks it, does what it says, saves the row, and asks again, until there is nothing to do but
 * wait. Killed anywhere, it goes on at the stage it was in: stages are safe to run again, and everything random in them
 * follows from the turn's seed. It is the same loop in `pawl serve` (loop/runner.ts), under `pawl loop run` and in a demo.
 */
import { setMaxListeners } from 'node:events';
import { collect } from './loop/collect.ts';
import { curate } from './loop/curate.ts';
import { deploy } from './loop/deploy.ts';
import { evaluate } from './loop/evaluate.ts';
import { type Known, readFacts, spentBy } from './loop/facts.ts';
import { type Ask, budgetLeft, type Next, nextStep, type Wait } from './loop/next-step.ts';
import { type LoopParts, runId, type Step } from './loop/parts.ts';
import { score, scoreNew } from './loop/score.ts';
import { train } from './loop/train.ts';
import { type LoopState, type LoopTurn, type StageName, stageNames } from './loop/turn.ts';
import { saveLoopTurn } from './store/loop-turns.ts';
import { saveLoop } from './store/loops.ts';
import { postgresRunStore } from './store/runs.ts';

const steps: Readonly<Record<StageName, Step>> = { collect, score, curate, train, evaluate, deploy };

/** Failures of a turn that are kept. */
const kept = 20;
/** A process that is killed takes the count of so much work with it, and no more: a budget is of what was worked. */
const noteMs = 15_000;
/** What a timer can be set to. */
const longestMs = 2 ** 31 - 1;

export type Advanced = { readonly turn: LoopTurn | null; readonly next: Wait | Ask };

/**
 * Does everything that can be done now, and says what is waited for. With `once`, it stops where a turn ends, and a stage
 * that fails throws: a person looks on. Aborted, it throws: the stage it was in is not done, and is entered again next time.
 */
export async function advance(parts: LoopParts, { once = false } = {}): Promise<Advanced> {
  for (;;) {
    parts.signal?.throwIfAborted();
    const now = Date.now();
    const known = await readFacts(parts.store, parts.agent, now);
    const next = nextStep(known.turn, known.facts, now);
    switch (next.kind) {
      case 'wait':
      case 'ask':
        return { turn: known.turn, next };
      case 'begin':
        await begin(parts, known, next, now);
        break;
      case 'end':
        await saveLoopTurn(parts.store, ended(known.turn!, known, { ended: next.reason }), parts.lead);
        break;
      case 'run':
        if (known.turn === null || known.turn.endedAt !== null) await scoreNew(parts, known.facts.evidence);
        else await runStage(parts, known, known.turn, next.stage, once);
        break;
      default:
        next satisfies never;
    }
    if (once && next.kind !== 'begin') {
      const { turn } = await readFacts(parts.store, parts.agent, Date.now());
      if (turn?.endedAt != null) return { turn, next: { kind: 'wait', until: null, reason: 'The turn has ended.' } };
    }
  }
}

async function begin(parts: LoopParts, known: Known, next: Next & { kind: 'begin' }, now: number): Promise<void> {
  const { store, agent, say, lead } = parts;
  const number = (known.turn?.number ?? 0) + 1;
  const { seed = agent.loop.seed ?? number, window } = known.wanted ?? {};
  const { trigger, reason } = next;
  const state = { begun: { trigger, reason, ...(window === undefined ? {} : { window }) } };
  const turn: LoopTurn = { agent: agent.name, number, seed, done: [], state, startedAt: now, endedAt: null };
  await saveLoopTurn(store, turn, lead);
  if (known.facts.wanted !== null) await saveLoop(store, agent.name, now, { wanted: null });
  say.begun?.(turn);
}

const ended = (turn: LoopTurn, { facts }: Known, more: LoopState): LoopTurn => ({
  ...turn,
  state: { ...turn.state, ...more, spent: facts.spent },
  endedAt: Date.now(),
});

async function runStage(
  parts: LoopParts,
  known: Known,
  turn: LoopTurn,
  stage: StageName,
  throws: boolean,
): Promise<void> {
  const started = Date.now();
  const left = budgetLeft(known.facts);
  // What a rollout takes is the users' time, and no budget takes it from them.
  const budget = stage === 'deploy' ? [] : [AbortSignal.timeout(Math.min(Math.ceil(left.seconds * 1000), longestMs))];
  const signal = AbortSignal.any([...(parts.signal ? [parts.signal] : []), ...budget]);
  setMaxListeners(0, signal); // every call under way listens to it
  /** The turn with what was used up, and more. */
  const save = async (done: LoopTurn['done'], part: LoopState): Promise<LoopTurn> => {
    const worked = (turn.state.seconds?.[stage] ?? 0) + (Date.now() - started) / 1000;
    const state = { ...turn.state, ...part, seconds: { ...turn.state.seconds, [stage]: worked } };
    const run = await postgresRunStore(parts.store).get(runId(turn));
    const spent = spentBy({ state }, run, parts.agent.train.moneyPerHour ?? 0);
    const endedAt = done.length === stageNames.length ? Date.now() : null;
    const saved = { ...turn, done, state: { ...state, spent }, endedAt };
    await saveLoopTurn(parts.store, saved, parts.lead);
    return saved;
  };
  const noting = noteNowAndThen(() => save(turn.done, {}), parts.noteMs ?? noteMs);
  try {
    const part = await steps[stage]({ ...parts, signal, left }, turn).finally(noting.end);
    const { state } = await save(part === null ? turn.done : [...turn.done, stage], part ?? {});
    if (part !== null) parts.say.done(stage, state);
  } catch (error) {
    if (parts.signal?.aborted) {
      await save(turn.done, {}).catch(() => {}); // perhaps another leads by now
      throw error;
    }
    if (signal.aborted) return void (await save(turn.done, {}));
    const failure = { stage, at: Date.now(), reason: error instanceof Error ? error.message : String(error) };
    await save(turn.done, { failures: [...(turn.state.failures ?? []), failure].slice(-kept) });
    if (throws) throw error;
  }
}

/** A note that cannot be made is made later, or not: it is no part of the stage. Once it has ended, none is under way. */
function noteNowAndThen(note: () => Promise<unknown>, everyMs: number): { end(): Promise<void> } {
  let last: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    last = last.then(note).catch(() => {});
  }, everyMs);
  return {
    async end() {
      clearInterval(timer);
      await last;
    },
  };
}
