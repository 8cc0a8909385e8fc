/**
 * Grades the agent against policy.md.
 *
 * In the end: success means all five parts hold. Reward 1 for success, less 0.1 for each wasted move (0.7 at least), and 0
 * otherwise, so nothing can be earned by looking busy.
 *   done       the customer left, within all limits
 *   state      the database is as the policy wants it
 *   conduct    nothing was changed or escalated that the policy does not call for, and nothing twice
 *   evidence   what had to be looked up was, before anything was done or said
 *   told       the last words hold the facts and claim nothing untrue
 *
 * Per turn, for turn-level credit, against the next move of the plan that has not been made yet:
 *   format 0.2     readable, one call or a text, a tool that exists, arguments that fit its schema
 *   choice 0.4     the right tool, or a text where one is due
 *   arguments 0.2  of the right tool: the right order, town, queue, or an article that answers; of a text: its facts
 *   news 0.2       not a repetition and not an error; a text: not said too early
 * A turn with a forbidden change gets 0 whatever its parts.
 */
import { type EndView, type Grade, spoken, type ToolStep, type TurnView, weigh } from 'pawl';
import { type Move, plan } from './policy.ts';
import { asking, misses } from './replies.ts';
import { type Effect, reads, type Shop, search } from './shop.ts';
import type { DeskData } from './tasks.ts';

export function gradeEnd(view: EndView<DeskData, Shop>): Grade & { success: boolean } {
  const { task, database, messages, outcome } = view;
  const moves = plan(task.data);
  const steps = view.steps.flat();
  const wanted = effectsOf(moves);
  const extra = beyond(database.effects, wanted);
  const missing = beyond(wanted, database.effects);
  const reply = moves.at(-1) as Extract<Move, { kind: 'reply' }>;
  const last = spoken(messages).findLast(({ who }) => who === 'agent')?.text ?? '';
  const told = misses(reply.ending, last, task.data.question?.others);
  const unread = unreadBefore(moves, steps, task.data);
  const parts = weigh({
    done: [1, Number(outcome === 'done'), `ended by ${outcome}`],
    state: [1, Number(missing.length === 0), `not done: ${missing.map(({ tool }) => tool).join(', ')}`],
    conduct: [1, Number(extra.length === 0), `not allowed: ${extra.map(({ tool }) => tool).join(', ')}`],
    evidence: [1, Number(unread === null), `${unread} was not used first`],
    told: [1, Number(told === null), `last words: ${told}`],
  });
  const success = parts.reasons.length === 0;
  const made = steps.length + spoken(messages).filter(({ who }) => who === 'agent').length;
  const waste = Math.max(0, made - moves.length);
  return { ...parts, success, reward: success ? Math.max(0.7, 1 - 0.1 * waste) : 0 };
}

export function gradeTurn(view: TurnView<DeskData, Shop>): Grade {
  const { task, message, steps, before, broken } = view;
  const moves = plan(task.data);
  const next = nextMove(moves, before, customerMessages(view), task.data);
  const text = message.content ?? '';
  const step = steps[0];
  const clean = broken === null && steps.length <= 1 && (steps.length === 1) !== (text !== '');
  if (step === undefined) {
    const due = next.kind !== 'call';
    const wrong = !due
      ? `spoke before ${next.tool}`
      : next.kind === 'ask'
        ? asking.test(text) && text.includes('?')
          ? null
          : 'did not ask for the order number'
        : misses(next.ending, text, task.data.question?.others);
    return weigh({
      format: [0.2, Number(clean), broken ?? 'neither one call nor one text'],
      choice: [0.4, Number(broken === null && due), wrong ?? 'unreadable'],
      arguments: [0.2, Number(broken === null && wrong === null), wrong ?? 'unreadable'],
      news: [0.2, Number(broken === null && due), 'nothing new'],
    });
  }
  const right = next.kind === 'call' && step.name === next.tool;
  const fits = right && makes(step, next, task.data);
  const repeated = before.some((one) => same(one, step));
  const failed = step.mistake !== null || isError(step.result);
  const expected = next.kind === 'call' ? next.tool : 'a text';
  const grade = weigh({
    format: [0.2, Number(clean && step.mistake === null), step.mistake ?? 'not one call alone'],
    choice: [0.4, Number(right), `${step.name} where ${expected} was due`],
    arguments: [0.2, Number(fits), `wrong arguments for ${step.name}`],
    news: [0.2, Number(!repeated && !failed), repeated ? 'called before' : 'an error'],
  });
  const forbidden = beyond(stepEffects([...before, ...steps]), effectsOf(moves)).length > 0;
  const already = beyond(stepEffects(before), effectsOf(moves)).length > 0;
  return forbidden && !already
    ? { ...grade, reward: 0, reasons: [...grade.reasons, `forbidden: ${step.name}`] }
    : grade;
}

/** The first move of the plan that has not been made; the reply, once all others have. */
export function nextMove(moves: readonly Move[], steps: readonly ToolStep[], customer: number, data: DeskData): Move {
  return (
    moves.find((move) =>
      move.kind === 'ask'
        ? customer < 2
        : move.kind === 'call'
          ? !steps.some((step) => step.name === move.tool && makes(step, move, data))
          : true,
    ) ?? moves.at(-1)!
  );
}

/** How often the customer had spoken when the turn was written: an answer that follows the turn does not count. */
function customerMessages(view: TurnView<DeskData, Shop>): number {
  const at = view.messages.lastIndexOf(view.message);
  return view.messages.slice(0, at).filter(({ role }) => role === 'user').length;
}

/** Whether a call does what the move asks. Any query will do that finds the same article. */
function makes(step: ToolStep, move: Extract<Move, { kind: 'call' }>, data: DeskData): boolean {
  if (step.name !== move.tool || step.arguments === null || isError(step.result)) return false;
  if (move.tool === 'search_articles') {
    const query = String(step.arguments.query).toLowerCase();
    const found = search(data.articles, query);
    return found === null
      ? data.product.split(' ').every((word) => query.includes(word))
      : found.product === data.product;
  }
  return sameArgs(step.arguments, move.args);
}

/** The first thing that should have been read but was not before the first change, or before the last words. */
function unreadBefore(moves: readonly Move[], steps: readonly ToolStep[], data: DeskData): string | null {
  const firstEffect = steps.findIndex(
    (step) => !reads.has(step.name) && step.mistake === null && !isError(step.result),
  );
  const early = firstEffect < 0 ? steps : steps.slice(0, firstEffect);
  for (const move of moves) {
    if (move.kind !== 'call' || !reads.has(move.tool)) continue;
    if (!early.some((step) => makes(step, move, data))) return move.tool;
  }
  return null;
}

const isError = (result: unknown): boolean => typeof result === 'object' && result !== null && 'error' in result;

const effectsOf = (moves: readonly Move[]): Effect[] =>
  moves.flatMap((move) =>
    move.kind === 'call' && !reads.has(move.tool) ? [{ tool: move.tool, args: move.args }] : [],
  );

const stepEffects = (steps: readonly ToolStep[]): Effect[] =>
  steps.flatMap((step) =>
    step.mistake === null && step.arguments !== null && !reads.has(step.name) && !isError(step.result)
      ? [{ tool: step.name, args: step.arguments }]
      : [],
  );

/** What is in the first list and not in the second; the same thing twice needs two to answer for it. */
function beyond(some: readonly Effect[], allowed: readonly Effect[]): Effect[] {
  const left = [...allowed];
  return some.filter((one) => {
    const at = left.findIndex((other) => other.tool === one.tool && sameArgs(other.args, one.args));
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

const same = (a: ToolStep, b: ToolStep): boolean =>
  a.name === b.name && a.arguments !== null && b.arguments !== null && sameArgs(a.arguments, b.arguments);

function sameArgs(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}
