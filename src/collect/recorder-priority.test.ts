import { expect, test } from 'vitest';
import { createRecorderPriority } from './recorder-priority.ts';
import type { Waiting } from './yielding.ts';

const nothing: Waiting = { full: 0, oldestMs: 0, askedMs: 0 };

/** A recorder's thread number 7 that is looked at once a second, and all that is done to it. */
function watched({ free = true, works = true, mayNice = true } = {}) {
  const done: string[] = [];
  const setIdle = async (thread: number, on: boolean) => {
    done.push(`${thread} ${on ? 'idle' : 'not idle'}`);
    return works;
  };
  const priority = createRecorderPriority(
    { setIdle },
    (isIdle) => void done.push(isIdle ? 'told it is idle' : 'told it is not'),
    (thread, niceness) => {
      if (!mayNice) throw new Error('EACCES');
      done.push(`${thread} nice ${niceness}`);
    },
  );
  let came = 0;
  let now = 0;
  const second = async (rate: number, waiting: Partial<Waiting> = {}) => {
    came += rate;
    now += 1000;
    const goesOn = priority.look(came, now, { ...nothing, ...waiting });
    await new Promise(setImmediate);
    return goesOn;
  };
  priority.of({ thread: 7, niceness: 0, free });
  return { priority, second, done: () => done.splice(0) };
}

test('in a rush the thread becomes idle and nice, from half a queue on only nice, and in the end neither', async () => {
  const { second, done } = watched();
  await second(0);
  await second(5000);
  expect(done()).toEqual(['7 nice 10', '7 idle', 'told it is idle']);
  await second(5000, { full: 0.6 });
  expect(done()).toEqual(['7 not idle', 'told it is not']);
  await second(5000, { full: 0.8 });
  expect(done()).toEqual(['7 nice 0']);
  await second(5000, { full: 0.1 });
  expect(done()).toEqual(['7 nice 10', '7 idle', 'told it is idle']);
  for (let i = 0; i < 11; i++) await second(0);
  expect(done()).toEqual(['7 nice 0', '7 not idle', 'told it is not']);
});

test('there is nothing to look at once it is calm', async () => {
  const { second } = watched();
  expect(await second(100)).toBe(true);
  expect(await second(100)).toBe(true);
  expect(await second(0)).toBe(false);
  expect(await second(100)).toBe(true);
});

test('where no program makes it idle it stays nice, and is asked once', async () => {
  const { second, done } = watched({ works: false });
  await second(0);
  for (let i = 0; i < 3; i++) await second(5000);
  expect(done()).toEqual(['7 nice 10', '7 idle']);
});

test('what cannot be taken back is given up once', async () => {
  const { second, done } = watched({ free: false });
  await second(0);
  for (const rate of [5000, 0, 0, 0, 0, 5000]) await second(rate);
  expect(done()).toEqual(['7 nice 10']);
});

test('where niceness is refused nothing more is tried', async () => {
  const { second, done } = watched({ mayNice: false });
  await second(0);
  for (let i = 0; i < 3; i++) await second(5000);
  expect(done()).toEqual([]);
});

test('a thread that takes its place begins as it says, and gives way at the next look', async () => {
  const { priority, second, done } = watched();
  await second(0);
  await second(5000);
  done();
  priority.of({ thread: 8, niceness: 5, free: true });
  await second(5000);
  expect(done()).toEqual(['8 nice 10', '8 idle', 'told it is idle']);
  await priority.end();
  expect(done()).toEqual(['8 nice 5', '8 not idle', 'told it is not']);
  expect(await second(5000)).toBe(false);
});

test('the end does not wait for an answer that never comes', async () => {
  const priority = createRecorderPriority(
    { setIdle: () => new Promise(() => {}) },
    () => {},
    () => {},
  );
  priority.of({ thread: 7, niceness: 0, free: true });
  priority.look(0, 0, nothing);
  priority.look(5000, 1000, nothing);
  await priority.end();
});
