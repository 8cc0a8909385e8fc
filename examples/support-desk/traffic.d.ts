/**
 * Makes tasks look like a shop's real traffic, for the demo: returning customers with user ids, some who agreed to
 * training and some who did not, a vote now and then. What they write, e-mail addresses and card numbers included, is the
 * task's own (tasks.ts): practice, golden set and traffic must not differ in kind.
 */
import type { Consent } from '../../src/collect/trajectory.ts';
import type { Split, Task } from '../../src/simulate/environment.ts';
import type { Episode } from '../../src/simulate/episode.ts';
import type { DeskData } from './tasks.ts';
export type Visitor = {
    readonly user: string;
    readonly name: string;
    readonly consent: Consent;
};
export type Visit = {
    readonly task: Task<DeskData>;
    readonly visitor: Visitor;
};
export type TrafficOptions = {
    readonly seed: number;
    /** How many different customers there are. */
    readonly customers?: number;
};
export declare function visit(task: Task<DeskData>, { seed, customers }: TrafficOptions): Visit;
/** The same number is the same person, with the same name and the same consent. */
export declare function makeVisitor(number: number, split: Split, seed: number): Visitor;
/** What the customer thought of it; most never say. They judge by what they saw: nine in ten are right. */
export declare function vote(episode: Episode, seed: number): 'up' | 'down' | null;
