import { expect, test } from 'vitest';
import { type Marks, type Topic, topics } from '../store/changes.ts';
import { createLive, type Listener, type LiveEvent } from './live.ts';

const marksOf = (some: Partial<Record<Topic, Record<string, string>>>): Marks =>
  new Map(topics.map((topic) => [topic, new Map(Object.entries(some[topic] ?? {}))]));

function world(settings: { kept?: number; most?: number } = {}) {
  let marks = marksOf({});
  let away = false;
  let looks = 0;
  const live = createLive({
    everyMs: 5,
    ...settings,
    look: async () => {
      looks++;
      if (away) throw new Error('away');
      return marks;
    },
  });
  return {
    live,
    looks: () => looks,
    set: (some: Parameters<typeof marksOf>[0]) => {
      marks = marksOf(some);
    },
    setAway: (is: boolean) => {
      away = is;
    },
  };
}

const next = async ({ events }: Listener): Promise<LiveEvent> => (await events.next()).value as LiveEvent;
const heard = async (listener: Listener) => {
  const { topic, id } = (await next(listener)).data;
  return [topic, id];
};
const until = async (is: () => boolean) => {
  while (!is()) await new Promise((done) => setTimeout(done, 2));
};

test('a listener is greeted, then hears which record of what changed', async () => {
  const { live, set, looks } = world();
  const listener = live.listen(undefined);
  expect(await heard(listener)).toEqual(['hello', null]);
  await until(() => looks() > 0);
  set({ runs: { 'sft-1': 'step 2' }, trajectories: { '': 'newest' } });
  expect(await heard(listener)).toEqual(['trajectories', null]);
  expect(await heard(listener)).toEqual(['runs', 'sft-1']);
  live.close();
  expect((await listener.events.next()).done).toBe(true);
});

test('nobody looks while nobody listens, and the first look after tells what changed meanwhile', async () => {
  const { live, set, looks } = world();
  const first = live.listen(undefined);
  await next(first);
  await until(() => looks() > 1);
  first.close();
  await until(() => live.listeners === 0);
  await new Promise((done) => setTimeout(done, 20));
  const before = looks();
  await new Promise((done) => setTimeout(done, 30));
  expect(looks()).toBe(before);
  set({ reports: { r: '1' } });
  const second = live.listen(undefined);
  await next(second);
  expect(await heard(second)).toEqual(['reports', 'r']);
  live.close();
});

test('whoever was cut off hears what they missed; where nobody knows, they are told to ask for everything', async () => {
  const { live, set, looks } = world({ kept: 2 });
  const listener = live.listen(undefined);
  const { id: greeting } = await next(listener);
  await until(() => looks() > 0);
  set({ runs: { a: '1' } });
  const { id: first } = await next(listener);
  set({ runs: { a: '1', b: '1' } });
  const { id: second } = await next(listener);
  const back = live.listen(first);
  expect(await heard(back)).toEqual(['hello', null]);
  expect((await next(back)).id).toBe(second);
  expect(await heard(live.listen(second))).toEqual(['hello', null]);
  set({ runs: { a: '1', b: '1', c: '1' } });
  await next(listener);
  expect(await heard(live.listen(first))).toEqual(['all', null]); // only two are kept
  expect(await heard(live.listen(greeting))).toEqual(['all', null]);
  expect(await heard(live.listen('another-process-7'))).toEqual(['all', null]);
  live.close();
});

test('a database that is away and comes back loses no listener and no change', async () => {
  const { live, set, setAway, looks } = world();
  const listener = live.listen(undefined);
  await next(listener);
  await until(() => looks() > 0);
  setAway(true);
  const before = looks();
  await until(() => looks() > before + 1);
  set({ audit: { '': '9' } });
  setAway(false);
  expect(await heard(listener)).toEqual(['audit', null]);
  live.close();
});

test('more than the most are told to come back', () => {
  const { live } = world({ most: 1 });
  live.listen(undefined);
  expect(() => live.listen(undefined)).toThrow(/which is the most/);
  live.close();
});
