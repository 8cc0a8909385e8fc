import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { afterAll, expect, test } from 'vitest';
import { isPerThread, mayReturn, openPolicies, thisThread } from './priority.ts';

/** Tells its number, and its policy when asked. */
const code = `
const { parentPort } = require('node:worker_threads');
const { readFileSync, readlinkSync } = require('node:fs');
parentPort.on('message', () => {
  const stat = readFileSync('/proc/thread-self/stat', 'utf8');
  parentPort.postMessage(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[38]);
});
parentPort.postMessage(Number(readlinkSync('/proc/thread-self').split('/').at(-1)));`;

const policies = openPolicies();
afterAll(() => policies.close());

test.runIf(isPerThread && mayReturn())(
  'one thread becomes idle and takes it back, the others stay as they are',
  async () => {
    const worker = new Worker(code, { eval: true });
    try {
      const [thread] = (await once(worker, 'message')) as [number];
      const policy = async () => {
        worker.postMessage(null);
        return ((await once(worker, 'message')) as [string])[0];
      };
      expect(await policy()).toBe('0');
      if (!(await policies.setIdle(thread, true))) return; // there is no such program here
      expect(await policy()).toBe('5');
      const ours = readFileSync('/proc/self/stat', 'utf8');
      expect(ours.slice(ours.lastIndexOf(')') + 2).split(' ')[38]).toBe('0');
      expect(await policies.setIdle(thread, false)).toBe(true);
      expect(await policy()).toBe('0');
    } finally {
      await worker.terminate();
    }
  },
);

test('what is not there cannot be made idle, which is said, in the order in which it was asked', async () => {
  const said: string[] = [];
  const ask = (name: string, id: number) => policies.setIdle(id, true).then((worked) => said.push(`${name} ${worked}`));
  await Promise.all([ask('first', 2 ** 22 + 1), ask('second', 2 ** 22 + 2), ask('no number', Number.NaN)]);
  expect(said.sort()).toEqual(['first false', 'no number false', 'second false']);
});

test('once closed nothing is made idle any more', async () => {
  const closed = openPolicies();
  closed.close();
  expect(await closed.setIdle(thisThread() ?? 1, true)).toBe(false);
});
