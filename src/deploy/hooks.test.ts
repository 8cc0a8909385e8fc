import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { readAudit } from '../store/audit.ts';
import { noon } from '../store/fixtures.ts';
import { readKilled, servingRelease } from '../store/releases.ts';
import { withStore } from '../store/test-store.ts';
import { alertsBody, askedBy, obey } from './alerts.ts';
import { signature, tellHooks, waitAfter } from './hooks.ts';
import { hookSettings } from './hooks-settings.ts';
import { createRelease, serveRelease, startRollout } from './reconcile.ts';

const secret = 'a secret of sixteen or more';

async function receiver() {
  const got: { body: string; signature: unknown }[] = [];
  const state = { status: 503 };
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on('end', () => {
      got.push({ body, signature: request.headers['x-pawl-signature'] });
      response.writeHead(state.status).end();
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  onTestFinished(() => void server.close());
  return { got, state, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

it('a hook is told what it asks for, signed, again until it takes it, and nothing of the past', async () => {
  const store = await withStore();
  const { got, state, url } = await receiver();
  const hooks = { chat: hookSettings.parse({ url, secret, events: ['release-served', 'rollout-'] }) };
  const release = (name: string) =>
    createRelease(store, { agent: 'desk', name, upstream: 'local', model: name }, 'ann', noon);
  await serveRelease(store, await release('v1'), 'ann', noon);
  await tellHooks(store, hooks);
  await serveRelease(store, await release('v2'), 'bob', noon, { reason: 'Better.' });
  await tellHooks(store, hooks);
  expect(got).toHaveLength(1);
  // It said 503, so it is told again, but not at once.
  await tellHooks(store, hooks);
  expect(got).toHaveLength(1);
  state.status = 204;
  await store.pool.query('update pawl.hook_calls set next_at = now() where ended_at is null');
  await tellHooks(store, hooks);
  await store.pool.query('update pawl.hook_calls set next_at = now()');
  await tellHooks(store, hooks);
  expect(got).toHaveLength(2);
  const [first, second] = got;
  expect(second!.body).toBe(first!.body);
  expect(second!.signature).toBe(signature(second!.body, secret));
  expect(JSON.parse(second!.body)).toMatchObject({
    ...{ agent: 'desk', event: 'release-served', by: 'bob' },
    details: { name: 'v2', before: 'v1', reason: 'Better.' },
  });
  expect([1, 2, 11, 12].map(waitAfter)).toEqual([2, 4, 2048, 3600]);
});

const alert = (labels: Record<string, string>, status = 'firing') => ({
  ...{ status, labels: { alertname: 'PawlErrorRate', ...labels }, annotations: { summary: 'Too many errors.' } },
});

it('only firing alerts about a known agent, with an action that is allowed, ask for something', () => {
  const alerts = alertsBody.parse({
    version: '4',
    alerts: [
      alert({ pawl_action: 'kill', agent: 'desk' }),
      alert({ pawl_action: 'kill', agent: 'desk', release: 'v2' }),
      alert({ pawl_action: 'abort', agent: 'desk' }),
      alert({ pawl_action: 'kill', agent: 'shop' }),
      alert({ pawl_action: 'kill', agent: 'desk' }, 'resolved'),
      alert({ agent: 'desk' }),
    ],
  });
  expect(askedBy(alerts, ['desk'], ['kill'])).toEqual([
    { agent: 'desk', action: 'kill', alert: 'PawlErrorRate', reason: 'Too many errors.' },
  ]);
  expect(askedBy(alerts, ['desk'], [])).toEqual([]);
});

it('an alert pulls the kill switch once, however often it fires', async () => {
  const store = await withStore();
  const release = (name: string) =>
    createRelease(store, { agent: 'desk', name, upstream: 'local', model: name }, 'ann', noon);
  await serveRelease(store, await release('v1'), 'ann', noon);
  const report = { id: 'report-1', verdict: 'pass', baseline: 'v1', candidate: 'v2' } as const;
  const start = { id: 'r1', agent: 'desk', candidate: await release('v2'), report, actor: 'ann' };
  await startRollout(store, start, noon);
  const asked = { agent: 'desk', action: 'kill', alert: 'PawlErrorRate', reason: 'Too many errors.' } as const;
  expect(await obey(store, asked, noon)).toBe(true);
  expect(await obey(store, asked, noon)).toBe(false);
  expect(await obey(store, { ...asked, action: 'hold' }, noon)).toBe(false);
  expect((await servingRelease(store, 'desk'))?.name).toBe('v1');
  expect(await readKilled(store, 'desk')).toMatchObject({ by: 'alert PawlErrorRate', reason: 'Too many errors.' });
  const events = (await readAudit(store, { actor: 'alert PawlErrorRate', oldestFirst: true })).map(
    ({ event }) => event,
  );
  expect(events).toEqual(['kill-switch-pulled', 'rollout-aborted']);
  await expect(startRollout(store, { ...start, id: 'r2' }, noon)).rejects.toThrow(
    /kill switch of agent desk is pulled/,
  );
});
