import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import pino from 'pino';
import { afterEach, expect, test } from 'vitest';
import { createListener, type HttpParts } from './http.ts';

const parts: HttpParts = {
  ...{ config: { host: '127.0.0.1', hosts: [], openDetails: false }, instance: 'one', roles: new Set(['gateway']) },
  ...{ adminHash: null, gateway: null, family: null, api: () => null, opens: () => false },
  ...{ problems: () => [], notReady: () => null, training: async () => '', log: pino({ level: 'silent' }) },
};
const server = createServer();
afterEach(() => {
  server.close();
  server.closeAllConnections();
});

test('figures that cannot be had are an answer that says so, and nobody waits for it', async () => {
  const family: HttpParts['family'] = {
    health: async () => ({ problems: [], recording: null }),
    figures: async () => {
      throw new Error('the parent of this process is gone');
    },
  };
  server.on('request', createListener({ ...parts, family })).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
  expect(answer.status).toBe(500);
  expect(await answer.json()).toMatchObject({ error: { code: 'internal_error' } });
});
