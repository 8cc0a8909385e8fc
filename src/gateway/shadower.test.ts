/** What shadow traffic may cost: a real database, and a server that answers slowly. */
import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { startUpstream } from '../../test/upstream.ts';
import { exchange } from '../collect/fixtures/exchange.ts';
import { createRelease, serveRelease, startRollout } from '../deploy/reconcile.ts';
import { shadowSettings } from '../deploy/shadow.ts';
import { countComparisons } from '../store/shadows.ts';
import { withStore } from '../store/test-store.ts';
import { createMetrics } from './metrics.ts';
import { createShadower } from './shadower.ts';
import { connectUpstreams } from './upstreams.ts';

it('a rollout’s shadow asks no more than it may, also when many ask at once', async () => {
  const store = await withStore();
  const server = await startUpstream();
  onTestFinished(() => server.close());
  const gpu = { baseUrl: server.url, models: [], defaults: {}, silenceSeconds: 10 };
  const upstreams = connectUpstreams({ gpu } as never);
  onTestFinished(() => upstreams.close());
  const make = (name: string, model: string) =>
    createRelease(store, { agent: 'desk', name, upstream: 'gpu', model }, 'ann', 1);
  await serveRelease(store, await make('v1', 'echo'), 'ann', 1);
  const candidate = await make('v2', 'slow-50');
  await startRollout(store, { id: 'r1', agent: 'desk', candidate, report: null, forced: 'Now.', actor: 'ann' }, 1);
  const shadower = createShadower({
    ...{
      upstreams,
      recorder: { record: () => true },
      metrics: createMetrics(
        () => ({}) as never,
        () => 0,
      ),
    },
    ...{ log: pino({ level: 'silent' }), store: () => store, load: () => ({ isFull: false }) },
  });
  const settings = shadowSettings.parse({ share: 1, most: 3 });
  const offer = (n: number) => {
    const seen = exchange({ agent: 'desk', trajectory: `t-${n}`, origin: 'production' });
    shadower.offer(
      seen,
      { rollout: 'r1', candidate, settings, origin: 'production' },
      { path: '/chat/completions', headers: {} },
    );
  };
  for (let n = 0; n < 8; n++) offer(n);
  await expect.poll(() => countComparisons(store, 'r1'), { timeout: 60_000 }).toBe(3);
  offer(8);
  await shadower.close();
  expect(server.calls.get('slow-50')).toBe(3);
});
