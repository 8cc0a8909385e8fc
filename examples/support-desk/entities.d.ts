/**
 * The things the shop's customers talk about: order numbers, products, towns, names, and the e-mail addresses and card
 * numbers they add. Each belongs to exactly one split by the hash of its name, so training, validation and golden tasks
 * cannot share one. Products and towns are made of two parts that every split knows, so a small model meets new combinations
 * rather than new letters. Addresses are under example.com, card numbers are invented and pass the Luhn check, so that
 * whoever must find them can be tested.
 */
import type { Split } from '../../src/simulate/environment.ts';
export type Kind = 'order' | 'product' | 'town' | 'name' | 'email' | 'card';
/** 14 of 20 train, 2 validation, 4 golden. */
export declare function splitOf(kind: Kind, value: string): Split;
/** Everything of a kind that belongs to a split, in a fixed mixed order. */
export declare function entities(kind: Kind, split: Split): readonly string[];
