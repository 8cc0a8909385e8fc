import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { afterContinue } from './skip-continue.ts';
import { connectUpstreams } from './upstreams.ts';

const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi';

it('a head is told from its first bytes, as soon as there are enough of them', () => {
  const rest = (text: string) => afterContinue(Buffer.from(text))?.toString() ?? null;
  expect(rest(answer)).toBe(answer);
  expect(rest(`HTTP/1.1 100 Continue\r\n\r\n${answer}`)).toBe(answer);
  expect(rest(`HTTP/1.1 100 Continue\r\nx: y\r\n\r\nHTTP/1.0 100 \r\n\r\n${answer}`)).toBe(answer);
  expect(rest(`HTTP/1.1 103 Early Hints\r\n\r\n${answer}`)).toContain('103');
  const continued = `HTTP/1.1 100 Continue\r\n\r\n`;
  for (let length = 0; length <= continued.length; length++)
    expect(rest(continued.slice(0, length)), `${length}`).toBeNull();
  expect(rest('SSH-2.0')).toBe('SSH-2.0');
});

it('an upstream that says 100 Continue before every answer is understood, however its bytes are cut', async () => {
  const said = `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n${answer}`;
  let cut = 0;
  const server = createServer((socket) => {
    socket.on('data', async (chunk) => {
      if (!chunk.toString().includes('\r\n\r\n')) return;
      socket.write(said.slice(0, cut));
      await new Promise((resolve) => setTimeout(resolve, 20));
      socket.write(said.slice(cut));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const upstreams = connectUpstreams({ it: { baseUrl, models: [], defaults: {}, silenceSeconds: 10, inside: false } });
  onTestFinished(async () => {
    await upstreams.close();
    server.close();
  });
  for (cut of [0, 1, 9, 12, 20, 25, 26, 60]) {
    const { statusCode, body } = await upstreams.get('it').pool.request({ path: '/', method: 'POST', body: 'x' });
    expect([statusCode, await body.text()]).toEqual([200, 'hi']);
  }
});
