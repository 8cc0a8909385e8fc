/**
 * policy.md as code: from a task's data, the moves a perfect agent makes, in order. The grader measures against it, the
 * expert plays it, and the base model's corpus departs from it on purpose. The agent never sees this; it has to learn it.
 */
import type { Queue, Status } from './shop.ts';
import type { DeskData } from './tasks.ts';
import type { Attribute } from './wording.ts';
/** How a conversation ends, with the facts the customer must be told. */
export type Ending = {
    readonly kind: 'status';
    readonly status: Status;
    readonly days: number | null;
} | {
    readonly kind: 'cancelled';
} | {
    readonly kind: 'refunded';
    readonly amount: number;
} | {
    readonly kind: 'moved';
    readonly town: string;
} | {
    readonly kind: 'replaced';
} | {
    readonly kind: 'answered';
    readonly attribute: Attribute;
    readonly value: string;
} | {
    readonly kind: 'ticket';
    readonly ticket: string;
}
/** `old`: more than 30 days since delivery. */
 | {
    readonly kind: 'declined';
    readonly wish: Wished;
    readonly why: Status | 'old';
};
export type Wished = 'cancel' | 'refund' | 'address' | 'damaged';
export type Move = {
    readonly kind: 'ask';
} | {
    readonly kind: 'call';
    readonly tool: string;
    readonly args: Readonly<Record<string, string>>;
} | {
    readonly kind: 'reply';
    readonly ending: Ending;
};
export declare const refundDays = 30;
export declare const escalatePrice = 100;
/** What to do and say once everything that can be known is known. */
export type Conclusion = {
    readonly calls: readonly Extract<Move, {
        kind: 'call';
    }>[];
    readonly ending: Ending;
};
export declare function plan(data: DeskData): readonly Move[];
/** The reading that comes before any decision. */
export declare function look(data: DeskData): readonly Extract<Move, {
    kind: 'call';
}>[];
export declare function conclude(data: DeskData): Conclusion;
/** What the customer of a wish hopes for, whether or not the policy allows it. */
export declare function granted(wish: 'refund' | 'damaged' | 'cancel' | 'address', data: DeskData): Conclusion;
export declare function escalated(queue: Queue, data: DeskData): Conclusion;
export declare function declined(wish: Wished, why: Status | 'old'): Conclusion;
