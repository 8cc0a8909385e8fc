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
  for (const _ in redactions) return Object.values(request).some(isOfUserWithMask);
  return false;
}

function isOfUserWithMask(said: unknown): boolean {
  if (Array.isArray(said)) return said.some(isOfUserWithMask);
  return typeof said === 'object' && said !== null && (said as { role?: unknown }).role === 'user' && hasMask(said);
}

function hasMask(value: unknown): boolean {
  if (typeof value === 'string') return mask.test(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(hasMask);
}
