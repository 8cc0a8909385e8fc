import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, it, onTestFinished } from 'vitest';

/** Runs the process with its standard error as the shell words say. */
async function chatty(redirection: string) {
  const child = spawn('bash', ['-c', `exec node --import tsx src/fixtures/chatty.ts ${redirection}`], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // a group of its own, readers included
  });
  const exited = once(child, 'exit');
  onTestFinished(() => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // the whole group is gone already
    }
  });
  const [port] = (await once(createInterface(child.stdout), 'line')) as [string];
  const lost = async () => Number(await (await fetch(`http://127.0.0.1:${port}`)).text());
  const stop = async () => {
    child.kill('SIGTERM');
    return (await exited)[0] as number | null;
  };
  return { child, lost, stop };
}

const linux = it.runIf(process.platform === 'linux');

linux('a log on a full disk costs lines, which are counted, and nothing else', async () => {
  const chat = await chatty('2>/dev/full');
  expect(await chat.lost()).toBe(200);
  expect(await chat.lost()).toBe(400);
  expect(await chat.stop()).toBe(0);
});

linux('a log whose pipe is closed does too', async () => {
  const chat = await chatty('2> >(exec true)');
  for (let lost = 0; lost === 0; ) lost = await chat.lost();
  expect(await chat.stop()).toBe(0);
});

it('a log whose descriptor is closed does too', async () => {
  const chat = await chatty('2>&-');
  await chat.lost();
  expect(await chat.stop()).toBe(0);
});

linux('a log whose reader stopped keeps a little and drops the rest', async () => {
  const chat = await chatty('2> >(read -r; exec sleep 1000)');
  for (let lost = 0; lost === 0; ) lost = await chat.lost();
  expect(await chat.stop()).toBe(0);
});

it('a log into a socket that nobody reads does too', async () => {
  const chat = await chatty('');
  chat.child.stderr!.pause();
  for (let lost = 0; lost === 0; ) lost = await chat.lost();
  expect(await chat.stop()).toBe(0);
});

it('a log that is read loses nothing', async () => {
  const chat = await chatty('');
  let lines = 0;
  createInterface(chat.child.stderr!).on('line', (line) => {
    expect(JSON.parse(line).msg).toBe('one of many warnings');
    lines++;
  });
  for (let i = 0; i < 5; i++) expect(await chat.lost()).toBe(0);
  await expect.poll(() => lines).toBe(1000);
  expect(await chat.stop()).toBe(0);
});
