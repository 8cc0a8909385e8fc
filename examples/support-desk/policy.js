/**
 * policy.md as code: from a task's data, the moves a perfect agent makes, in order. The grader measures against it, the
 * expert plays it, and the base model's corpus departs from it on purpose. The agent never sees this; it has to learn it.
 */
import { customersOrder } from './tasks.js';
export const refundDays = 30;
export const escalatePrice = 100;
export function plan(data) {
    const { calls, ending } = conclude(data);
    return [...(data.held ? [{ kind: 'ask' }] : []), ...look(data), ...calls, { kind: 'reply', ending }];
}
/** The reading that comes before any decision. */
export function look(data) {
    if (data.wish === 'complaint')
        return [];
    if (data.wish === 'product')
        return [call('search_articles', { query: data.product })];
    return [call('find_order', { order: data.order })];
}
export function conclude(data) {
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
            return data.wish;
    }
}
function tellStatus(data) {
    const { status, days } = customersOrder(data);
    return status === 'shipped'
        ? { calls: [call('track_order', { order: data.order })], ending: { kind: 'status', status, days } }
        : { calls: [], ending: { kind: 'status', status, days: null } };
}
/** Rules 4 and 6 differ only in what is done for the customer. */
function makeGood(data, wish, queue) {
    const { status, days, price } = customersOrder(data);
    if (status !== 'delivered')
        return declined(wish, status);
    if (days > refundDays)
        return declined(wish, 'old');
    if (price >= escalatePrice)
        return escalated(queue, data);
    return granted(wish, data);
}
/** What the customer of a wish hopes for, whether or not the policy allows it. */
export function granted(wish, data) {
    const order = data.order;
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
                calls: [call('change_address', { order, town: data.town })],
                ending: { kind: 'moved', town: data.town },
            };
        default:
            return wish;
    }
}
export function escalated(queue, data) {
    return { calls: [call('escalate', { queue })], ending: { kind: 'ticket', ticket: data.ticket } };
}
export function declined(wish, why) {
    return { calls: [], ending: { kind: 'declined', wish, why } };
}
function call(tool, args) {
    return { kind: 'call', tool, args };
}
