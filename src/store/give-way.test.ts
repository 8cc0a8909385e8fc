import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createWaiting } from './give-way.ts';

test('each connection gives way, all take an even share while they hurry, and one that is gone is left alone', () => {
  const set: string[] = [];
  const waiting = createWaiting(
    (pid, isIdle) => void set.push(`${pid} ${isIdle ? 'idle' : 'even'}`),
    (pid, niceness) => void set.push(`${pid} ${niceness}`),
  );
  waiting.add(1);
  waiting.add(2);
  waiting.gone(1);
  waiting.hurry(true);
  waiting.add(3);
  waiting.hurry(false);
  expect(set).toEqual([
    ...['1 idle', '1 19', '2 idle', '2 19'],
    ...['2 even', '2 0', '3 even', '3 0'],
    ...['2 idle', '2 19', '3 idle', '3 19'],
  ]);
});

test.runIf(existsSync('/proc/self/autogroup'))('the kernel knows of it', () => {
  const child = spawn('sleep', ['60'], { detached: true }); // a session of its own, so a group of its own
  try {
    const group = () => readFileSync(`/proc/${child.pid}/autogroup`, 'utf8');
    const waiting = createWaiting();
    waiting.add(child.pid!);
    expect(group()).toMatch(/nice 19$/m);
  } finally {
    child.kill();
  }
});
