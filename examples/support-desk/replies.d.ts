/**
 * The agent's words: how each ending may be said, and whether a text says it. Checks look for facts (a status, an amount, a
 * ticket, a town) and for claims that are not true, not for these very sentences, so a model is free in its wording.
 */
import type { Random } from '../../src/simulate/random.ts';
import type { Ending } from './policy.ts';
export declare const asking: RegExp;
export declare function sayAsk(r: Random): string;
export declare function sayEnding(ending: Ending, r: Random): string;
/** What is wrong with the agent's last words, given how it should have ended; null when nothing is. */
export declare function misses(ending: Ending, said: string, others?: readonly string[]): string | null;
