/** What a server is asked, and for how long. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { compatibilitySettings, judgeCompatibility, needsOf } from './compatibility.ts';
import { probeRelease } from './probe.ts';

let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

async function probed(milliseconds: number, seconds: number) {
  server = createServer(async (request, response) => {
    for await (const _ of request);
    await sleep(milliseconds);
    const choices = [{ message: { role: 'assistant', content: 'Bern.' }, finish_reason: 'stop' }];
    response.end(JSON.stringify({ choices }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const door = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, key: 'secret' };
  const used = { calls: 0, chats: 0, contextTokens: null, promptTokens: null, answerTokens: null, load: 0 };
  const needs = needsOf(compatibilitySettings.parse({ seconds, load: 4 }), {
    ...used,
    tools: false,
    structured: false,
  });
  return judgeCompatibility(await probeRelease({ door, agent: 'desk', release: 'v1' }, needs), needs).checks;
}
const latency = (checks: Awaited<ReturnType<typeof probed>>) => checks.find(({ name }) => name === 'latency');

it('twelve requests at least, four at a time, where the server is quick enough', async () => {
  expect(latency(await probed(0, 30))).toMatchObject({
    ...{
      verdict: 'pass',
      reason: expect.stringMatching(/^The slowest of 12 answers, 4 at a time, took 0\.\d\d s; 30 s/),
    },
  });
});

it('no more of a server that is known to be too slow', async () => {
  expect(latency(await probed(50, 0.01))).toMatchObject({
    ...{
      verdict: 'fail',
      reason: expect.stringMatching(/^The slowest of 4 answers, 4 at a time, took 0\.\d\d s; 0\.01 s/),
    },
  });
});

it('an answer without an end is given up once it is too long, and does not fill the memory', async () => {
  let sent = 0;
  server = createServer((request, response) => {
    request.resume();
    const piece = Buffer.alloc(256 * 1024, 0x20);
    const more = (): void => {
      while (!response.destroyed && response.write(piece)) sent += piece.length;
      if (!response.destroyed) response.once('drain', more);
    };
    more();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const door = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, key: 'secret' };
  const used = { calls: 0, chats: 0, contextTokens: null, promptTokens: null, answerTokens: null, load: 0 };
  const needs = needsOf(compatibilitySettings.parse({}), { ...used, tools: false, structured: false });
  const { template } = await probeRelease({ door, agent: 'desk', release: 'v1' }, needs);
  expect(template).toMatchObject({ status: 0, detail: 'it sent more than 1048576 bytes' });
  expect(sent).toBeLessThan(64 * 1024 * 1024);
});
