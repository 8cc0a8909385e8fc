/**
 * Rules for tool calls, from the recording alone. A call is worth
 *
 *   0     a tool that was not offered, arguments that are not JSON or do not fit the tool's own schema, a call nobody
 *         could read, or the same call again that brought the same result
 *   0.5   the tool answered with an error: perhaps the model's doing, perhaps not
 *   1     otherwise
 *
 * and a turn, like the whole conversation, is worth the mean of its calls. No call is unmeasured: whether one was needed
 * is a question for outcomes. The same call with another result is no repeat, because the world changed in between.
 */

import { chatMessages } from '../collect/chat-form.ts';
import type { Turn } from '../collect/turn.ts';
import { isObject, type JsonObject, parseUntrusted, withSortedKeys } from '../collect/untrusted.ts';
import { misfitIfKnown } from './json-schema.ts';
import { type ComputingScorer, inOrder, mean, unmeasured } from './scorer.ts';

type Call = { readonly id: string | null; readonly name: string | null; readonly arguments: unknown };
type Faults = Map<string, number>;

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const objectOf = (value: unknown): JsonObject => (isObject(value) ? value : {});

function callOf(value: unknown): Call {
  const call = objectOf(value);
  const body = objectOf(call.function ?? call.custom);
  return {
    id: typeof call.id === 'string' ? call.id : null,
    name: typeof body.name === 'string' ? body.name : null,
    arguments: body.arguments ?? body.input,
  };
}

/** Calls of the first choice: that is the one agents act on. */
function callsOf(turn: Turn): { calls: Call[]; unreadable: number } {
  const message = turn.choices[0]?.message ?? {};
  const calls = listOf(message.tool_calls).map(callOf);
  if (isObject(message.function_call)) calls.push(callOf({ function: message.function_call }));
  const unreadable = message.malformed_tool_calls;
  return { calls, unreadable: Number.isSafeInteger(unreadable) ? Math.min(100, Math.max(0, unreadable as number)) : 0 };
}

/** The tools a request offered: name → schema of the arguments; null when it offered none in a form we know. */
function toolsOf(turn: Turn): Map<string, unknown> | null {
  const offered = [...listOf(turn.request.tools), ...listOf(turn.request.functions)];
  if (offered.length === 0) return null;
  return new Map(
    offered.flatMap((tool): [string, unknown][] => {
      const body = objectOf(objectOf(tool).function ?? objectOf(tool).custom ?? tool);
      return typeof body.name === 'string' ? [[body.name, body.parameters ?? body.input_schema]] : [];
    }),
  );
}

/** What came back for a turn's calls: the tool messages after its answer in a later request, by id of the call. */
function resultsOf(turns: readonly Turn[], k: number, calls: readonly Call[]): Map<string, string> {
  const results = new Map<string, string>();
  const ids = JSON.stringify(calls.map(({ id }) => id));
  for (const later of turns.slice(k + 1, k + 1 + nearby)) {
    const messages = listOf(chatMessages(later)).map(objectOf);
    const answer = messages.findLastIndex(({ role }) => role === 'assistant');
    if (answer < 0) continue;
    if (JSON.stringify(listOf(messages[answer]!.tool_calls).map((call) => callOf(call).id)) !== ids) continue;
    for (const { role, tool_call_id: id, content } of messages.slice(answer + 1))
      if (role === 'tool' && typeof id === 'string')
        results.set(id, typeof content === 'string' ? content : (JSON.stringify(content) ?? ''));
    return results;
  }
  return results;
}
/** Sub-agents' turns may come between a call and the request that carries its result. */
const nearby = 8;

const isError = (result: string): boolean => {
  const value = parseUntrusted(result);
  if (isObject(value)) return Boolean(value.error) || value.isError === true || value.is_error === true;
  return /^\s*error\b/i.test(result);
};

type Judged = { readonly worth: number; readonly fault: string | null };

function judge(
  call: Call,
  tools: Map<string, unknown> | null,
  result: string | null,
  seen: Map<string, Set<string | null>>,
): Judged {
  if (call.name === null) return { worth: 0, fault: 'without a name' };
  if (tools !== null && !tools.has(call.name)) return { worth: 0, fault: 'of an unknown tool' };
  const given = typeof call.arguments === 'string' ? parseUntrusted(call.arguments || '{}') : call.arguments;
  if (!isObject(given)) return { worth: 0, fault: 'with arguments that are no JSON object' };
  if (misfitIfKnown(given, tools?.get(call.name)) !== null)
    return { worth: 0, fault: 'with arguments that do not fit' };
  const key = JSON.stringify([call.name, withSortedKeys(given)]);
  const before = seen.get(key);
  const repeated = before !== undefined && (result === null || before.has(null) || before.has(result));
  seen.set(key, (before ?? new Set()).add(result));
  if (repeated) return { worth: 0, fault: 'repeated for nothing' };
  return result !== null && isError(result) ? { worth: 0.5, fault: 'answered by an error' } : { worth: 1, fault: null };
}

export function toolUse(): ComputingScorer {
  return {
    name: 'tool use',
    version: JSON.stringify(['tool-use', 2]),
    score({ turns: given }) {
      const turns = inOrder(given);
      const seen = new Map<string, Set<string | null>>();
      const faults: Faults = new Map();
      const perTurn = new Map<string, number>();
      const all: number[] = [];
      for (const [k, turn] of turns.entries()) {
        const { calls, unreadable } = callsOf(turn);
        if (calls.length + unreadable === 0) continue;
        const tools = toolsOf(turn);
        const results = resultsOf(turns, k, calls);
        const judged = calls.map((call) => judge(call, tools, results.get(call.id ?? '') ?? null, seen));
        for (let i = 0; i < unreadable; i++) judged.push({ worth: 0, fault: 'nobody can read' });
        for (const { fault } of judged) if (fault !== null) faults.set(fault, (faults.get(fault) ?? 0) + 1);
        const worths = judged.map(({ worth }) => worth);
        perTurn.set(turn.id, mean(worths));
        for (const worth of worths) all.push(worth); // there may be 100,000
      }
      if (all.length === 0) return unmeasured('no tool calls');
      const wrong = [...faults].map(([fault, count]) => `${count} ${fault}`).join(', ');
      const calls = all.length === 1 ? '1 tool call' : `${all.length} tool calls`;
      return { value: mean(all), reason: wrong === '' ? `${calls}, all sound` : `${calls}: ${wrong}`, turns: perTurn };
    },
  };
}
