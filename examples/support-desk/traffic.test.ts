import validator from 'validator';
import { expect, test } from 'vitest';
import { makeTasks } from '../../src/simulate/environment.ts';
import { play } from '../../src/simulate/episode.ts';
import { supportDesk } from './desk.ts';
import { expert } from './expert.ts';
import { visit, vote } from './traffic.ts';

const tasks = makeTasks(supportDesk, 'train', 600, 11);
const visits = tasks.map((task) => visit(task, { seed: 3 }));

test('some openings hold e-mail addresses and card numbers that checkers recognise', () => {
  const emails = visits.flatMap(({ personal }) => personal.emails);
  const cards = visits.flatMap(({ personal }) => personal.cards);
  // A fifth and a tenth of 600.
  expect(Math.abs(emails.length - 120)).toBeLessThan(50);
  expect(Math.abs(cards.length - 60)).toBeLessThan(40);
  for (const email of emails) expect(validator.isEmail(email)).toBe(true);
  for (const card of cards) expect([card, validator.isLuhnNumber(card.replaceAll(' ', ''))]).toEqual([card, true]);
  for (const { task, personal } of visits) {
    for (const piece of [...personal.emails, ...personal.cards]) expect(task.data.opening).toContain(piece);
  }
});

test('the same customer comes back with the same name and consent; all three consents occur', () => {
  const byUser = new Map<string, string>();
  for (const { visitor } of visits) {
    const line = JSON.stringify(visitor);
    expect(byUser.get(visitor.user) ?? line).toBe(line);
    byUser.set(visitor.user, line);
  }
  expect(byUser.size).toBeGreaterThan(100);
  expect(new Set(visits.map(({ visitor }) => visitor.consent))).toEqual(new Set(['given', 'unknown', 'withdrawn']));
});

test('a decorated task is as solvable as before, and votes follow success', async () => {
  const decorated = visits.map(({ task }) => task);
  const episodes = (await play(supportDesk, expert(decorated), decorated)).flat();
  expect(episodes.filter(({ success }) => !success)).toEqual([]);
  const votes = episodes.map((episode) => vote(episode, 1));
  const ups = votes.filter((one) => one === 'up').length;
  const downs = votes.filter((one) => one === 'down').length;
  // 30% of 600 vote, nine in ten of them up.
  expect(Math.abs(ups + downs - 180)).toBeLessThan(60);
  expect(ups).toBeGreaterThan(downs * 4);
});
