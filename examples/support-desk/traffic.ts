/**
 * Makes tasks look like a shop's real traffic, for the demo: returning customers with user ids, some who agreed to
 * training and some who did not, messages with e-mail addresses and card numbers in them, a vote now and then. Training
 * tasks stay undecorated, so that they fit a small model's context. Addresses are under example.com, card numbers are
 * invented and pass the Luhn check, so that whoever must find them can be tested.
 */
import type { Consent } from '../../src/collect/trajectory.ts';
import type { Split, Task } from '../../src/simulate/environment.ts';
import type { Episode } from '../../src/simulate/episode.ts';
import { type Random, random } from '../../src/simulate/random.ts';
import { entities } from './entities.ts';
import type { DeskData } from './tasks.ts';

export type Visitor = { readonly user: string; readonly name: string; readonly consent: Consent };

export type Visit = {
  readonly task: Task<DeskData>;
  readonly visitor: Visitor;
  /** What personal data the opening holds, for tests of who has to find it. */
  readonly personal: { readonly emails: readonly string[]; readonly cards: readonly string[] };
};

export type TrafficOptions = {
  readonly seed: number;
  /** How many different customers there are. */
  readonly customers?: number; // 200
  readonly emailShare?: number; // 0.2
  readonly cardShare?: number; // 0.1
};

export function visit(task: Task<DeskData>, options: TrafficOptions): Visit {
  const { seed, customers = 200, emailShare = 0.2, cardShare = 0.1 } = options;
  const r = random('traffic', seed, task.id);
  const visitor = makeVisitor(r.integer(1, customers), task.split, seed);
  const emails = r.chance(emailShare) ? [`${visitor.name.toLowerCase()}.${visitor.user}@example.com`] : [];
  const cards = r.chance(cardShare) ? [cardNumber(r)] : [];
  const opening = [
    task.data.opening,
    ...emails.map((email) => r.pick([`My mail is ${email}.`, `Write to ${email}.`])),
    ...cards.map((card) => r.pick([`I paid with card ${card}.`, `My card is ${card}.`])),
  ].join(' ');
  return { task: { ...task, data: { ...task.data, opening } }, visitor, personal: { emails, cards } };
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

function cardNumber(r: Random): string {
  const digits = [4, ...Array.from({ length: 14 }, () => r.integer(0, 9))];
  const sum = digits.reduce(
    (total, digit, i) => total + (i % 2 === 0 ? (digit * 2 > 9 ? digit * 2 - 9 : digit * 2) : digit),
    0,
  );
  const all = [...digits, (10 - (sum % 10)) % 10].join('');
  return all.replace(/(\d{4})(?=\d)/g, '$1 ');
}
