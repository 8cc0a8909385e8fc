import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { createUploads, type Uploads } from './upload.ts';

/** A server that reads whatever comes and answers when it has ended. */
async function listen(limits: { bytesPerSecond: number; everyMs: number; wholeMs: number }, passes = false) {
  let ended = 0;
  const uploads: Uploads = createUploads((incoming, response) => {
    ended++;
    response.writeHead(408, { connection: 'close' }).end();
    incoming.destroy();
  }, limits);
  const server = createServer((incoming, response) => {
    uploads.watch(incoming, response);
    if (passes) uploads.passes(incoming);
    incoming.on('error', () => {});
    incoming.resume().on('end', () => response.end('whole'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, ended: () => ended };
}

/** Sends `bytes` every 20 ms, `times` times; true when the server took it all. */
function send(port: number, bytes: number, times: number): Promise<boolean> {
  return new Promise((resolve) => {
    const upload = request({ port, host: '127.0.0.1', method: 'POST' }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    upload.on('error', () => resolve(false));
    let left = times;
    const timer = setInterval(() => {
      if (left-- > 0 && !upload.destroyed) upload.write(Buffer.alloc(bytes));
      else {
        clearInterval(timer);
        upload.end();
      }
    }, 20);
  });
}

it('an upload that crawls is ended, one that moves is not', async () => {
  const { port, ended } = await listen({ bytesPerSecond: 1000, everyMs: 500, wholeMs: 60_000 });
  expect(await Promise.all([send(port, 1, 1000), send(port, 100_000, 80)])).toEqual([false, true]);
  expect(ended()).toBe(1);
});

it('an upload that never ends is ended, unless it passes through', async () => {
  const limits = { bytesPerSecond: 1, everyMs: 100, wholeMs: 300 };
  const held = await listen(limits);
  const passing = await listen(limits, true);
  expect(await Promise.all([send(held.port, 1000, 1000), send(passing.port, 1000, 60)])).toEqual([false, true]);
  expect([held.ended(), passing.ended()]).toEqual([1, 0]);
});
