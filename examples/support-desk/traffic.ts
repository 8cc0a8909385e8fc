/**
 * Makes tasks look like a shop's real traffic, for the demo: returning customers with user ids, some who agreed to
 * training and some who did not, a vote now and then. What they write, e-mail addresses and card numbers included, is the
 * task's own (tasks.ts): practice, golden set and traffic must not differ in kind.
 */
import { type Consent, type Episode, random, type Split, type Task } from 'pawl';
import { entities } from './entities.ts';
import type { DeskData } from './tasks.ts';

export type Visitor = { readonly user: string; readonly name: string; readonly consent: Consent };

export type Visit = { readonly task: Task<DeskData>; readonly visitor: Visitor };

export type TrafficOptions = {
  readonly seed: number;
  /** How many different customers there are. */
  readonly customers?: number | undefined; // 200
};

export function visit(task: Task<DeskData>, { seed, customers = 200 }: TrafficOptions): Visit {
  const number = random('traffic', seed, task.id).integer(1, customers);
  return { task, visitor: makeVisitor(number, task.split, seed) };
}

/** The same number is the same person, with the same name and the same consent. */
export function makeVisitor(number: number, split: Split, seed: number): Visitor {
  const r = random('visitor', seed, number);
  return {
    user: `u${1000 + number}`,
    name: r.pick(entities('name', split)),
    consent: r.weighted({ given: 7, unknown: 2, withdrawn: 1 }),
  };
}

/** What the customer thought of it; most never say. They judge by what they saw: nine in ten are right. */
export function vote(episode: Episode, seed: number): 'up' | 'down' | null {
  const r = random('vote', seed, episode.id);
  if (!r.chance(0.3)) return null;
  return episode.success === r.chance(0.9) ? 'up' : 'down';
}
