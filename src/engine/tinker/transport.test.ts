import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { exchangedKey } from './credential.ts';
import { createTransport } from './transport.ts';

let server: Server;
const { signal } = new AbortController();
type Asked = { readonly url: string; readonly key: string | undefined };

async function serve(answer: (response: ServerResponse, asked: Asked) => void) {
  const asked: Asked[] = [];
  server = createServer((request, response) => {
    request.resume();
    const one = { url: request.url!, key: request.headers['x-api-key'] as string | undefined };
    asked.push(one);
    answer(response, one);
  });
  await new Promise<void>((go) => server.listen(0, '127.0.0.1', go));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

test('an answer larger than its limit is not read', async () => {
  const { url } = await serve((response) => response.end(Buffer.alloc(5000)));
  const transport = createTransport({ url, patienceMs: 1000, signal });
  await expect(transport.get('/x', { maxBytes: 4096 })).rejects.toThrow(/more than 4096 bytes/);
});

test('a redirect is not followed, and a refusal is told in the server’s words', async () => {
  const { url, asked } = await serve((response, one) => {
    if (one.url === '/moved') response.writeHead(302, { location: '/elsewhere' }).end();
    else response.writeHead(422).end(JSON.stringify({ detail: [{ msg: 'Field required' }] }));
  });
  const transport = createTransport({ url, patienceMs: 1000, signal });
  await expect(transport.post('/moved', {}, z.unknown())).rejects.toThrow(/\(302\)/);
  await expect(transport.post('/bad', {}, z.unknown())).rejects.toThrow(/\(422\): .*Field required/);
  expect(asked.map((one) => one.url)).toEqual(['/moved', '/bad']);
});

test('a server that has too much to do is left alone for as long as it asks, and not for ever', async () => {
  let busy = 2;
  const { url, asked } = await serve((response) => {
    if (busy-- > 0) response.writeHead(429, { 'retry-after-ms': '30' }).end('{}');
    else response.end('{"fine":true}');
  });
  const transport = createTransport({ url, patienceMs: 10_000, signal });
  expect(await transport.post('/x', {}, z.object({ fine: z.boolean() }))).toEqual({ fine: true });
  expect(asked).toHaveLength(3);
  busy = 1000;
  const hasty = createTransport({ url, patienceMs: 150, signal });
  await expect(hasty.post('/x', {}, z.unknown())).rejects.toThrow(/\(429\).*\(engine\.patienceSeconds\)/);
});

test('a key is exchanged where the server wants that, and again before it ends', async () => {
  let made = 0;
  let now = 0;
  const { url, asked } = await serve((response, one) => {
    if (one.url === '/api/v1/client/config') response.end('{"pjwt_auth_enabled":true}');
    else {
      const payload = Buffer.from(JSON.stringify({ exp: now / 1000 + 3600 })).toString('base64url');
      response.end(JSON.stringify({ jwt: `eyJ${made++}.${payload}.x` }));
    }
  });
  const key = exchangedKey('tml-key', { url, patienceMs: 1000, signal }, () => now);
  expect((await key()).startsWith('eyJ0.')).toBe(true);
  expect((await key()).startsWith('eyJ0.')).toBe(true);
  now += 3_400_000;
  expect((await key()).startsWith('eyJ1.')).toBe(true);
  expect(asked.every((one) => one.key === 'tml-key')).toBe(true);
});
