/**
 * Rules for tool calls, from the recording alone. A call is worth
 *
 *   0     a tool that was not offered, arguments that are not JSON or do not fit the tool's own schema (a custom tool takes any
 *         text), a call nobody could read, or the same call again that brought the same result
 *   0.5   the tool answered with an error: perhaps the model's doing, perhaps not
 *   1     otherwise
 *
 * and a turn, like the whole conversation, is worth the mean of its calls. No call is unmeasured: whether one was needed
 * is a question for outcomes. `needs` says which tool is right only after which others. `recovered` pays for an error that a later call of the same tool made good. The same call with another result is no repeat, because the world changed in between.
 */

import { chatMessages } from '../collect/chat-form.ts';
import { saysError, type ToolCall, toolCallsOf, toolOf, toolResultOf } from '../collect/message.ts';
import type { Turn } from '../collect/turn.ts';
import { isObject, listOf, parseUntrusted, withSortedKeys } from '../collect/untrusted.ts';
import { misfitIfKnown } from './json-schema.ts';
import { type ComputingScorer, inOrder, mean, unmeasured } from './scorer.ts';

type Faults = Map<string, number>;

/** Calls of the first choice: that is the one agents act on. */
function callsOf(turn: Turn): { calls: ToolCall[]; unreadable: number } {
  const message = turn.choices[0]?.message ?? {};
  const unreadable = message.malformed_tool_calls;
  return {
    calls: toolCallsOf(message),
    unreadable: Number.isSafeInteger(unreadable) ? Math.min(100, Math.max(0, unreadable as number)) : 0,
  };
}

/** The tools a request offered: name → schema of the arguments; null when it offered none in a form we know. */
function toolsOf(turn: Turn): Map<string, unknown> | null {
  const offered = [...listOf(turn.request.tools), ...listOf(turn.request.functions)];
  if (offered.length === 0) return null;
  return new Map(
    offered
      .map(toolOf)
      .flatMap(({ name, parameters }): [string, unknown][] => (name === null ? [] : [[name, parameters]])),
  );
}

/** What came back for a turn's calls: the tool messages after its answer in a later request, by id of the call. */
function resultsOf(turns: readonly Turn[], k: number, calls: readonly ToolCall[]): Map<string, string> {
  const results = new Map<string, string>();
  const ids = JSON.stringify(calls.map(({ id }) => id));
  for (const later of turns.slice(k + 1, k + 1 + nearby)) {
    const messages = listOf(chatMessages(later)).filter(isObject);
    const answer = messages.findLastIndex(({ role }) => role === 'assistant');
    if (answer < 0) continue;
    if (JSON.stringify(toolCallsOf(messages[answer]!).map(({ id }) => id)) !== ids) continue;
    for (const message of messages.slice(answer + 1)) {
      const result = toolResultOf(message);
      if (result !== null && result.id !== null) results.set(result.id, result.text);
    }
    return results;
  }
  return results;
}
/** Sub-agents' turns may come between a call and the request that carries its result. */
const nearby = 8;

const isError = (result: string): boolean => {
  const value = parseUntrusted(result);
  if (isObject(value)) return Boolean(value.error) || value.isError === true || value.is_error === true;
  return saysError(result);
};

export type JudgedCall = {
  readonly call: ToolCall | null;
  readonly worth: number;
  readonly fault: string | null;
  /** What came back; null: nothing that was recorded. */
  readonly result: string | null;
};

function judge(
  call: ToolCall,
  tools: Map<string, unknown> | null,
  result: string | null,
  seen: Map<string, Set<string | null>>,
): { readonly worth: number; readonly fault: string | null } {
  if (call.name === null) return { worth: 0, fault: 'without a name' };
  if (tools !== null && !tools.has(call.name)) return { worth: 0, fault: 'of an unknown tool' };
  const isText = call.type === 'custom';
  const given = isText
    ? { input: call.arguments }
    : typeof call.arguments === 'string'
      ? parseUntrusted(call.arguments || '{}')
      : call.arguments;
  if (!isObject(given)) return { worth: 0, fault: 'with arguments that are no JSON object' };
  if (!isText && misfitIfKnown(given, tools?.get(call.name)) !== null)
    return { worth: 0, fault: 'with arguments that do not fit' };
  const key = JSON.stringify([call.name, withSortedKeys(given)]);
  const before = seen.get(key);
  const repeated = before !== undefined && (result === null || before.has(null) || before.has(result));
  seen.set(key, (before ?? new Set()).add(result));
  if (repeated) return { worth: 0, fault: repeatedForNothing };
  return result !== null && isError(result) ? { worth: 0.5, fault: answeredByError } : { worth: 1, fault: null };
}
export const answeredByError = 'answered by an error';
export const repeatedForNothing = 'repeated for nothing';
const recoveredFrom = 'answered by an error and recovered from';

const known = new WeakMap<readonly Turn[], ReadonlyMap<Turn, readonly JudgedCall[]>>();

/** The calls of each turn that made any, judged, in order. Several scorers of a reward ask, so it is done once. */
export function judgedCalls(given: readonly Turn[]): ReadonlyMap<Turn, readonly JudgedCall[]> {
  const judged = known.get(given) ?? judgeCalls(inOrder(given));
  known.set(given, judged);
  return judged;
}

function judgeCalls(turns: readonly Turn[]): ReadonlyMap<Turn, readonly JudgedCall[]> {
  const seen = new Map<string, Set<string | null>>();
  const judged = new Map<Turn, JudgedCall[]>();
  for (const [k, turn] of turns.entries()) {
    const { calls, unreadable } = callsOf(turn);
    if (calls.length + unreadable === 0) continue;
    const tools = toolsOf(turn);
    const results = resultsOf(turns, k, calls);
    const ofTurn = calls.map((call): JudgedCall => {
      const result = results.get(call.id ?? '') ?? null;
      return { call, result, ...judge(call, tools, result, seen) };
    });
    for (let i = 0; i < unreadable; i++) ofTurn.push({ call: null, result: null, worth: 0, fault: 'nobody can read' });
    judged.set(turn, ofTurn);
  }
  return judged;
}

export type ToolUseOptions = {
  /** What a call is worth that an error answered, where a later call of the same tool went well. */
  readonly recovered?: number; // 0.5, as if it had not been recovered from
  /** What must have gone well earlier in the conversation before a tool is right: `{ refund: ['get_order'] }`. A call before is worth 0. */
  readonly needs?: Readonly<Record<string, readonly string[]>>;
};

/** Calls of tools whose time had not come. Calls of one turn do not know each other's results. */
function earlyCalls(
  judged: ReadonlyMap<Turn, readonly JudgedCall[]>,
  needs: Readonly<Record<string, readonly string[]>>,
): ReadonlySet<JudgedCall> {
  const early = new Set<JudgedCall>();
  const wentWell = new Set<string>();
  for (const calls of judged.values()) {
    for (const one of calls) {
      const name = one.call?.name ?? '';
      if (one.worth > 0 && Object.hasOwn(needs, name) && !needs[name]!.every((need) => wentWell.has(need)))
        early.add(one);
    }
    for (const one of calls) if (one.worth === 1 && !early.has(one)) wentWell.add(one.call!.name!);
  }
  return early;
}

export function toolUse({ recovered = 0.5, needs = {} }: ToolUseOptions = {}): ComputingScorer {
  if (!(recovered >= 0.5 && recovered <= 1))
    throw new Error(`An error that was recovered from is worth ${recovered}; give a number from 0.5 to 1.`);
  const empty = Object.entries(needs).find(([, tools]) => tools.length === 0);
  if (empty !== undefined) throw new Error(`toolUse: '${empty[0]}' needs nothing; name the tools that come before it.`);
  const order = Object.entries(needs)
    .map(([tool, before]) => [tool, [...before].sort()] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    name: 'tool use',
    version: JSON.stringify([
      ...['tool-use', 4],
      ...(recovered === 0.5 && order.length === 0 ? [] : [recovered]),
      ...(order.length === 0 ? [] : [order]),
    ]),
    inProcess: true,
    score({ turns }) {
      const faults: Faults = new Map();
      const perTurn = new Map<string, number>();
      const all: number[] = [];
      const wentWell = new Set<string | null>(); // tools, looking back from the end
      const calls = judgedCalls(turns);
      const early = earlyCalls(calls, needs);
      for (const [turn, judged] of [...calls].reverse()) {
        const worths = [...judged].reverse().map((one) => {
          const { call, worth, fault } = early.has(one) ? { ...one, worth: 0, fault: 'before its time' } : one;
          const name = call?.name ?? null;
          if (worth === 1) wentWell.add(name);
          const isRecovered = fault === answeredByError && recovered > 0.5 && wentWell.has(name);
          const shown = isRecovered ? recoveredFrom : fault;
          if (shown !== null) faults.set(shown, (faults.get(shown) ?? 0) + 1);
          return isRecovered ? recovered : worth;
        });
        perTurn.set(turn.id, mean(worths));
        for (const worth of worths) all.push(worth); // there may be 100,000
      }
      if (all.length === 0) return unmeasured('no tool calls');
      const wrong = [...faults]
        .reverse()
        .map(([fault, count]) => `${count} ${fault}`)
        .join(', ');
      const count = all.length === 1 ? '1 tool call' : `${all.length} tool calls`;
      return { value: mean(all), reason: wrong === '' ? `${count}, all sound` : `${count}: ${wrong}`, turns: perTurn };
    },
  };
}
