/** What kinds of traffic are told apart by, from a turn's request, so that measuring need not read requests. Pure. */
import type { Turn } from '../collect/turn.ts';

/** What the agent's own request says it is about. */
export function taskTypeOf({ metadata }: Turn['request']): string | null {
  const type = typeof metadata === 'object' ? (metadata as { task_type?: unknown } | null)?.task_type : undefined;
  return typeof type === 'string' && /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(type) ? type : null;
}

/** `[EMAIL_1]`, `[EMAIL_h…]`, `[KR_RRN]`; in older rows `[email]`. */
const mask = /\[(?:[a-z][a-z-]{2,30}|[A-Z][A-Z_]{1,30}(?:_(?:\d{1,9}|h[a-z0-9]{12}))?)\]/;

/** Masks of redaction in a user's words; a company's address in its own instructions or answers does not count. */
export function isPersonal(request: Turn['request'], redactions: Turn['redactions']): boolean {
  for (const _ in redactions)
    return isMasked(request.input) || isMasked(request.prompt) || Object.values(request).some(isOfUserWithMask);
  return false;
}

/** Where nobody else speaks, a bare text is the user's. */
const isMasked = (said: unknown): boolean => typeof said === 'string' && mask.test(said);

function isOfUserWithMask(said: unknown): boolean {
  if (Array.isArray(said)) return said.some(isOfUserWithMask);
  if (typeof said !== 'object' || said === null || (said as { role?: unknown }).role !== 'user') return false;
  let known = masked.get(said);
  if (known === undefined) {
    known = hasMask(said);
    masked.set(said, known);
  }
  return known;
}
/** A message of a conversation that goes on is the same object each time (collect/redact/known-messages.ts), and never changes. */
const masked = new WeakMap<object, boolean>();

function hasMask(value: unknown): boolean {
  if (typeof value === 'string') return mask.test(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(hasMask);
}

type Named = { readonly name?: unknown; readonly function?: unknown; readonly custom?: unknown };
const mostTools = 100;

/** Of a tool, or of a call in chat form. */
function nameOf(value: unknown): string | null {
  if (typeof value !== 'object' || value === null) return null;
  const { name, function: called, custom } = value as Named;
  const own = called ?? custom;
  const found = typeof own === 'object' && own !== null ? (own as Named).name : name;
  return typeof found === 'string' && found.length <= 128 ? found : null;
}
const namesIn = (list: unknown): string[] =>
  Array.isArray(list) ? list.slice(0, 10 * mostTools).flatMap((one) => nameOf(one) ?? []) : [];

const offersOne = (list: unknown): boolean =>
  Array.isArray(list) && list.slice(0, 10 * mostTools).some((one) => nameOf(one) !== null);

/** Which of the tools that the request offers its answer calls, each once; null: it offers none. */
export function toolsCalledOf({ request, choices }: Pick<Turn, 'request' | 'choices'>): string[] | null {
  const message = choices[0]?.message as
    | { readonly tool_calls?: unknown; readonly function_call?: unknown }
    | undefined;
  const called =
    message?.tool_calls == null && message?.function_call == null
      ? []
      : [...namesIn(message.tool_calls), ...namesIn([message.function_call])];
  if (called.length === 0) return offersOne(request.tools) || offersOne(request.functions) ? [] : null;
  const offered = new Set([...namesIn(request.tools), ...namesIn(request.functions)]);
  if (offered.size === 0) return null;
  return [...new Set(called)].filter((name) => offered.has(name)).slice(0, mostTools);
}
