import { AggregatorRegistry, Counter, Histogram, Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { createCallFigures } from './call-figures.ts';

const calls = [
  { agent: 'desk', release: 'v1', endpoint: 'chat', status: 'ok', seconds: 0.004, firstByteSeconds: 0.002 },
  { agent: 'desk', release: 'v1', endpoint: 'chat', status: 'ok', seconds: 0.005, firstByteSeconds: null },
  { agent: 'desk', release: 'v1', endpoint: 'messages', status: 'error', seconds: 121, firstByteSeconds: null },
  { agent: 'desk', release: 'v2"\n', endpoint: 'chat', status: 'ok', seconds: 3, firstByteSeconds: 1 },
  { agent: 'clerk', release: '__proto__', endpoint: 'chat', status: 'ok', seconds: 3, firstByteSeconds: 1 },
];

/** The same calls, counted by prom-client itself. */
function counted(): Registry {
  const registry = new Registry();
  const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
  const labelNames = ['agent', 'release'];
  const registers = [registry];
  const requests = new Counter({
    name: 'pawl_requests_total',
    help: 'Requests that an upstream was asked, by how they ended',
    labelNames: [...labelNames, 'endpoint', 'status'],
    registers,
  });
  const times = (name: string, what: string) =>
    new Histogram({
      name,
      help: `Time from request to the ${what} byte of the answer`,
      labelNames,
      buckets,
      registers,
    });
  const latency = times('pawl_request_seconds', 'last');
  const firstByte = times('pawl_first_byte_seconds', 'first');
  for (const { agent, release, endpoint, status, seconds, firstByteSeconds } of calls) {
    requests.inc({ agent, release, endpoint, status });
    latency.observe({ agent, release }, seconds);
    if (firstByteSeconds !== null) firstByte.observe({ agent, release }, firstByteSeconds);
  }
  return registry;
}

function ours(): Registry {
  const registry = new Registry();
  const figures = createCallFigures(registry);
  for (const call of calls) figures.ended(call);
  return registry;
}

const lines = (text: string) => text.split('\n').sort();

it('reads as what prom-client would have counted, line for line', async () => {
  expect(lines(await ours().metrics())).toEqual(lines(await counted().metrics()));
});

it('adds up over several processes as prom-client’s own does', async () => {
  const both = async (of: () => Registry) =>
    lines(await AggregatorRegistry.aggregate([await of().getMetricsAsJSON(), await of().getMetricsAsJSON()]).metrics());
  expect(await both(ours)).toEqual(await both(counted));
});

it('says nothing of calls that were not made', async () => {
  const registry = new Registry();
  createCallFigures(registry);
  expect(await registry.metrics()).not.toMatch(/^pawl/m);
});
