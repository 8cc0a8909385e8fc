/**
 * The desk's tasks: what a customer wants, what they will say, and the little database it happens in, all as plain data.
 * Eight types; inside each, the situations that the policy tells apart come up about equally often. Pure in the random
 * stream and the split.
 */
import { z } from 'zod';
import type { Split } from '../../src/simulate/environment.ts';
import type { Random } from '../../src/simulate/random.ts';
import { type Order } from './shop.ts';
export declare const wishes: readonly ['status', 'cancel', 'refund', 'address', 'damaged', 'product', 'complaint'];
export declare const deskData: z.ZodObject<{
    wish: z.ZodEnum<{
        address: "address";
        cancel: "cancel";
        complaint: "complaint";
        damaged: "damaged";
        product: "product";
        refund: "refund";
        status: "status";
    }>;
    persona: z.ZodEnum<{
        calm: "calm";
        "changes-mind": "changes-mind";
        panicked: "panicked";
        repeating: "repeating";
        terse: "terse";
        typos: "typos";
    }>;
    opening: z.ZodString;
    number: z.ZodNullable<z.ZodString>;
    held: z.ZodBoolean;
    instead: z.ZodNullable<z.ZodString>;
    order: z.ZodNullable<z.ZodString>;
    town: z.ZodNullable<z.ZodString>;
    product: z.ZodString;
    question: z.ZodNullable<z.ZodObject<{
        attribute: z.ZodEnum<{
            power: "power";
            size: "size";
            warranty: "warranty";
            weight: "weight";
        }>;
        answer: z.ZodNullable<z.ZodString>;
        others: z.ZodArray<z.ZodString>;
    }, z.core.$strict>>;
    orders: z.ZodArray<z.ZodObject<{
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
    }, z.core.$strict>>;
    articles: z.ZodArray<z.ZodObject<{
        product: z.ZodString;
        text: z.ZodString;
    }, z.core.$strict>>;
    ticket: z.ZodString;
    email: z.ZodNullable<z.ZodString>;
    card: z.ZodNullable<z.ZodString>;
}, z.core.$strict>;
export type DeskData = z.infer<typeof deskData>;
/** The customer's order in the database. */
export declare function customersOrder(data: DeskData): Order;
/** Shares of customers who write their e-mail address or card number, needed or not: in practice and golden tasks as in traffic. */
export declare const personalShare: {
    readonly email: 0.2;
    readonly card: 0.1;
};
export declare const deskTypes: Readonly<Record<string, (random: Random, split: Split) => DeskData>>;
