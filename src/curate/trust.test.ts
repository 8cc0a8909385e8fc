import { expect, test } from 'vitest';
import type { Signal } from '../collect/signal.ts';
import { entry } from '../store/fixtures.ts';
import { voteWeight, weighedVote } from './trust.ts';

test('a first vote counts whole; the hundredth of somebody who never says otherwise hardly', () => {
  expect(voteWeight({ votes: 1, sum: 1 }, 1)).toBe(1);
  expect(voteWeight({ votes: 3, sum: 2 }, 1)).toBe(1); // one up and one down besides
  expect(voteWeight({ votes: 101, sum: 101 }, 1)).toBeCloseTo((4 * 101) / 102 / 102, 10);
  expect(voteWeight({ votes: 101, sum: 0 }, 0)).toBeCloseTo((4 * 101) / 102 / 102, 10);
});

test('votes that weigh little leave an answer undecided, and do not outvote one that weighs', () => {
  const vote = (user: string, value: number) =>
    (entry.signal({ identity: `vote ${user}`, user, value }) as { signal: Signal }).signal;
  const always = { votes: 101, sum: 101 };
  const there = new Set(['ann', 'bob', ...Array.from({ length: 5 }, (_, i) => `shill-${i}`)]);
  const histories = new Map([...there].filter((user) => user.startsWith('shill')).map((user) => [user, always]));
  const said = (...votes: [string, number][]) =>
    weighedVote(
      votes.map(([user, value]) => vote(user, value)),
      there,
      histories,
    );
  expect(said()).toBeNull();
  expect(said(['ann', 1])).toBe(1);
  expect(said(['ann', 1], ['bob', 0])).toBe(0.5);
  const weight = voteWeight(always, 1); // 0.039
  expect(said(['shill-0', 1])).toBeCloseTo(0.5 + weight / 2, 10);
  const five = Array.from({ length: 5 }, (_, i): [string, number] => [`shill-${i}`, 1]);
  expect(said(...five, ['ann', 0])).toBeCloseTo((5 * weight) / (5 * weight + 1), 10);
  // Names that a key gives are one voter together.
  expect(said(['x', 1], ['y', 1], ['z', 1], ['ann', 0])).toBe(0.5);
});
