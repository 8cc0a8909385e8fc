/**
 * policy.md as code: from a task's data, the moves a perfect agent makes, in order. The grader measures against it, the
 * expert plays it, and the base model's corpus departs from it on purpose. The agent never sees this; it has to learn it.
 */

import type { Queue, Status } from './shop.ts';
import type { DeskData } from './tasks.ts';
import { customersOrder } from './tasks.ts';
import type { Attribute } from './wording.ts';

/** How a conversation ends, with the facts the customer must be told. */
export type Ending =
  | { readonly kind: 'status'; readonly status: Status; readonly days: number | null }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'refunded'; readonly amount: number }
  | { readonly kind: 'moved'; readonly town: string }
  | { readonly kind: 'replaced' }
  | { readonly kind: 'answered'; readonly attribute: Attribute; readonly value: string }
  | { readonly kind: 'ticket'; readonly ticket: string }
  /** `old`: more than 30 days since delivery. */
  | { readonly kind: 'declined'; readonly wish: Wished; readonly why: Status | 'old' };
export type Wished = 'cancel' | 'refund' | 'address' | 'damaged';

export type Move =
  | { readonly kind: 'ask' }
  | { readonly kind: 'call'; readonly tool: string; readonly args: Readonly<Record<string, string>> }
  | { readonly kind: 'reply'; readonly ending: Ending };

export const refundDays = 30;
export const escalatePrice = 100;

/** What to do and say once everything that can be known is known. */
export type Conclusion = { readonly calls: readonly Extract<Move, { kind: 'call' }>[]; readonly ending: Ending };

export function plan(data: DeskData): readonly Move[] {
  const { calls, ending } = conclude(data);
  return [...(data.held ? [{ kind: 'ask' } as const] : []), ...look(data), ...calls, { kind: 'reply', ending }];
}

/** The reading that comes before any decision. */
export function look(data: DeskData): readonly Extract<Move, { kind: 'call' }>[] {
  if (data.wish === 'complaint') return [];
  if (data.wish === 'product') return [call('search_articles', { query: data.product })];
  return [call('find_order', { order: data.order! })];
}

export function conclude(data: DeskData): Conclusion {
  switch (data.wish) {
    case 'complaint':
      return escalated('care', data);
    case 'product':
      return data.question?.answer == null
        ? escalated('product', data)
        : { calls: [], ending: { kind: 'answered', attribute: data.question.attribute, value: data.question.answer } };
    case 'status':
      return tellStatus(data);
    case 'cancel':
    case 'address': {
      const { status } = customersOrder(data);
      return status === 'processing' ? granted(data.wish, data) : declined(data.wish, status);
    }
    case 'refund':
      return makeGood(data, 'refund', 'refund');
    case 'damaged':
      return makeGood(data, 'damaged', 'damage');
    default:
      return data.wish satisfies never;
  }
}

function tellStatus(data: DeskData): Conclusion {
  const { status, days } = customersOrder(data);
  return status === 'shipped'
    ? { calls: [call('track_order', { order: data.order! })], ending: { kind: 'status', status, days } }
    : { calls: [], ending: { kind: 'status', status, days: null } };
}

/** Rules 4 and 6 differ only in what is done for the customer. */
function makeGood(data: DeskData, wish: 'refund' | 'damaged', queue: Queue): Conclusion {
  const { status, days, price } = customersOrder(data);
  if (status !== 'delivered') return declined(wish, status);
  if (days > refundDays) return declined(wish, 'old');
  if (price >= escalatePrice) return escalated(queue, data);
  return granted(wish, data);
}

/** What the customer of a wish hopes for, whether or not the policy allows it. */
export function granted(wish: 'refund' | 'damaged' | 'cancel' | 'address', data: DeskData): Conclusion {
  const order = data.order!;
  switch (wish) {
    case 'refund':
      return {
        calls: [call('refund_order', { order })],
        ending: { kind: 'refunded', amount: customersOrder(data).price },
      };
    case 'damaged':
      return { calls: [call('replace_order', { order })], ending: { kind: 'replaced' } };
    case 'cancel':
      return { calls: [call('cancel_order', { order })], ending: { kind: 'cancelled' } };
    case 'address':
      return {
        calls: [call('change_address', { order, town: data.town! })],
        ending: { kind: 'moved', town: data.town! },
      };
    default:
      return wish satisfies never;
  }
}

export function escalated(queue: Queue, data: DeskData): Conclusion {
  return { calls: [call('escalate', { queue })], ending: { kind: 'ticket', ticket: data.ticket } };
}

export function declined(wish: Wished, why: Status | 'old'): Conclusion {
  return { calls: [], ending: { kind: 'declined', wish, why } };
}

function call(tool: string, args: Readonly<Record<string, string>>): Extract<Move, { kind: 'call' }> {
  return { kind: 'call', tool, args };
}
