import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { homeOwner, lockHome } from './lock.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'pawl-lock-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

test('the folder belongs to one until it lets go', async () => {
  const lock = await lockHome(home);
  expect(homeOwner(home)).toBe(process.pid);
  await expect(lockHome(home)).rejects.toThrow(`in use by another Pawl, process ${process.pid}`);
  lock.release();
  expect(homeOwner(home)).toBeNull();
  (await lockHome(home)).release();
  expect(readdirSync(home)).toEqual([]);
});

test('a Pawl waits for a command that has the folder for a moment', async () => {
  const command = await lockHome(home, { brief: true });
  let served = false;
  const serving = lockHome(home).then((lock) => {
    served = true;
    return lock;
  });
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(served).toBe(false);
  command.release();
  (await serving).release();
});

test('a command is told at once: it joins the one that serves instead of waiting', async () => {
  const command = await lockHome(home, { brief: true });
  await expect(lockHome(home, { brief: true })).rejects.toThrow('in use by another Pawl');
  command.release();
});

test('a home that is a file, or lies in one, is refused in a sentence that says what to set', async () => {
  const file = join(home, 'file');
  writeFileSync(file, '');
  for (const impossible of [file, join(file, 'home')]) {
    expect(homeOwner(impossible)).toBeNull();
    await expect(lockHome(impossible)).rejects.toThrow(
      `${impossible} cannot be the data folder: it, or what it would lie in, is a file. Set PAWL_HOME`,
    );
  }
});

test.skipIf(process.platform === 'win32')('a home that is made is for its owner alone', async () => {
  const made = join(home, 'new');
  (await lockHome(made)).release();
  expect(statSync(made).mode & 0o777).toBe(0o700);
});
