import { makeTasks, play } from 'pawl';
import { expect, test } from 'vitest';
import { supportDesk } from './desk.ts';
import { expert } from './expert.ts';
import { visit, vote } from './traffic.ts';

const tasks = makeTasks(supportDesk, 'train', 600, 11);
const visits = tasks.map((task) => visit(task, { seed: 3 }));

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

test('votes follow success', async () => {
  const episodes = (await play(supportDesk, expert(tasks), tasks)).flat();
  expect(episodes.filter(({ success }) => !success)).toEqual([]);
  const votes = episodes.map((episode) => vote(episode, 1));
  const ups = votes.filter((one) => one === 'up').length;
  const downs = votes.filter((one) => one === 'down').length;
  // 30% of 600 vote, nine in ten of them up.
  expect(Math.abs(ups + downs - 180)).toBeLessThan(60);
  expect(ups).toBeGreaterThan(downs * 4);
});
