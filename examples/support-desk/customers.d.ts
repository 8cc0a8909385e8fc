/**
 * Customers who come through the gateway like anybody else's: with user ids and consent, with addresses and card numbers in
 * what they write, with a vote now and then, and an outcome that the shop measures once they have left.
 */
import type { Door, Visits } from '../../src/loop.ts';
/** Production traffic asks what nobody practised on: validation tasks, not training's and not golden ones. */
export declare function sendCustomers(door: Door, { prefix, seed, count, signal, onVisit }: Visits): Promise<{
    conversations: number;
    resolved: number;
}>;
