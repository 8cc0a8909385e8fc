/**
 * What customers write, by split: no template is shared, so golden tasks test understanding and not recall. {order},
 * {product} and {town} are filled from the split's entities. Under `bare` the customer leaves the order number out and has
 * to be asked. Only the customer's side is here; how the agent may answer is in replies.ts.
 */
import type { Split } from '../../src/simulate/environment.ts';
import type { Voices } from '../../src/simulate/scripted.ts';
type BySplit<T> = Readonly<Record<Split, T>>;
/** Requests that carry everything needed. */
export declare const requests: Readonly<Record<string, BySplit<readonly string[]>>>;
/** The same wishes without the number. */
export declare const bare: Readonly<Record<string, BySplit<readonly string[]>>>;
export declare const attributes: readonly ['weight', 'warranty', 'size', 'power'];
export type Attribute = (typeof attributes)[number];
/** Product questions, by what they ask about. */
export declare const questions: Readonly<Record<Attribute, BySplit<readonly string[]>>>;
/** What a customer says when asked for the number. */
export declare const numbers: BySplit<readonly string[]>;
/** What a customer who changes their mind adds to the number. */
export declare const instead: BySplit<readonly string[]>;
/** Greetings, used now and then. {name} is the customer's. */
export declare const greetings: BySplit<readonly string[]>;
/** What some customers add, asked or not. */
export declare const personal: Readonly<Record<'email' | 'card', BySplit<readonly string[]>>>;
export declare const voicesBySplit: BySplit<Voices>;
export {};
