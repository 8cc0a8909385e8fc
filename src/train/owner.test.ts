import { spawnSync } from 'node:child_process';
import { hostname } from 'node:os';
import { expect, test } from 'vitest';
import { ownerAlive, ownerName, thisOwner } from './owner.ts';

test('this process is alive', () => {
  expect(ownerAlive(thisOwner())).toBe(true);
});

test('a process that has ended is not', () => {
  const { pid } = spawnSync(process.execPath, ['--version']);
  expect(ownerAlive(`${hostname()} ${pid} whenever`)).toBe(false);
});

test('nor is one whose pid another process has now', () => {
  expect(ownerAlive(`${hostname()} ${process.pid} yesterday`)).toBe(false);
});

test('a process of another machine cannot be asked', () => {
  expect(ownerAlive(`elsewhere-${hostname()} ${process.pid} today`)).toBeNull();
});

test('people are shown the process and its machine', () => {
  expect(ownerName('trainer-1 4711 Sun Nov 15 06:05:12 2026')).toBe('process 4711 on trainer-1');
});
