/**
 * The shop as the agent can touch it: a private database and eight tools. Tools do what they are told, as real ones do: it
 * is the agent who must follow the policy. Results are short on purpose; the whole talk has to fit a very small model.
 */
import { z } from 'zod';
import { type Tool } from '../../src/simulate/environment.ts';
export declare const statuses: readonly ['processing', 'shipped', 'delivered', 'cancelled'];
export type Status = (typeof statuses)[number];
/** `days`: since delivery when delivered, until arrival when shipped, else 0. */
export declare const orderSchema: z.ZodObject<{
    number: z.ZodString;
    product: z.ZodString;
    town: z.ZodString;
    status: z.ZodEnum<{
        cancelled: "cancelled";
        delivered: "delivered";
        processing: "processing";
        shipped: "shipped";
    }>;
    price: z.ZodNumber;
    days: z.ZodNumber;
}, z.core.$strict>;
export type Order = z.infer<typeof orderSchema>;
export declare const articleSchema: z.ZodObject<{
    product: z.ZodString;
    text: z.ZodString;
}, z.core.$strict>;
export type Article = z.infer<typeof articleSchema>;
export declare const queues: readonly ['refund', 'damage', 'product', 'care'];
export type Queue = (typeof queues)[number];
/** Something that was changed in the shop, in the order it happened. */
export type Effect = {
    readonly tool: string;
    readonly args: Readonly<Record<string, unknown>>;
};
export type Shop = {
    readonly orders: Map<string, Order>;
    readonly articles: readonly Article[];
    /** Number the next escalation gets. */
    readonly ticket: string;
    readonly effects: Effect[];
};
export declare const tools: readonly Tool<Shop>[];
/** Tools that only read. */
export declare const reads: ReadonlySet<string>;
/** The article with the most of the query's words in its product's name; all of them have to be there. */
export declare function search(articles: readonly Article[], query: string): Article | null;
