/**
 * What each call adds to /metrics, counted in plain numbers: prom-client puts a key together from the labels at every call, for
 * each of four metrics, and that took more than finding out where the call goes. It is given the sums when somebody reads them.
 */
import type { Metric, Registry } from 'prom-client';

type Labels = Readonly<Record<string, string | number>>;
type Value = { readonly labels: Labels; readonly value: number; readonly metricName: string };

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

class Times {
  readonly #counts = new Array<number>(buckets.length).fill(0);
  #sum = 0;
  #count = 0;

  add(seconds: number): void {
    this.#sum += seconds;
    this.#count++;
    for (let i = 0; i < buckets.length; i++)
      if (seconds <= buckets[i]!) {
        this.#counts[i]!++;
        return;
      }
  }

  values(name: string, labels: Labels): Value[] {
    if (this.#count === 0) return [];
    let sum = 0;
    const below = buckets.map((le, i) => {
      sum += this.#counts[i]!;
      return { labels: { le, ...labels }, value: sum, metricName: `${name}_bucket` };
    });
    return [
      ...below,
      { labels: { le: '+Inf', ...labels }, value: this.#count, metricName: `${name}_bucket` },
      { labels, value: this.#sum, metricName: `${name}_sum` },
      { labels, value: this.#count, metricName: `${name}_count` },
    ];
  }
}

type Release = { readonly agent: string; readonly release: string; readonly latency: Times; readonly firstByte: Times };
type Ended = { readonly labels: Labels; count: number };

export type CallFigures = {
  ended(call: {
    readonly agent: string;
    readonly release: string;
    readonly endpoint: string;
    readonly status: string;
    readonly seconds: number;
    readonly firstByteSeconds: number | null;
  }): void;
};

/** Of two levels: a name is looked up as it is, and nothing is put together. */
function of<V>(map: Map<string, Map<string, V>>, first: string, second: string, make: () => V): V {
  const inner = map.get(first) ?? new Map<string, V>();
  const value = inner.get(second);
  if (value !== undefined) return value;
  const made = make();
  map.set(first, inner.set(second, made));
  return made;
}

const ofRelease = ['agent', 'release'];

export function createCallFigures(registry: Registry): CallFigures {
  const releases = new Map<string, Map<string, Release & { readonly ended: Map<string, Map<string, Ended>> }>>();
  const all = () => [...releases.values()].flatMap((ofAgent) => [...ofAgent.values()]);
  const register = (
    name: string,
    help: string,
    type: 'counter' | 'histogram',
    labelNames: string[],
    read: () => Value[],
  ) =>
    registry.registerMetric({
      ...{ name, labelNames },
      get: async () => ({ name, help, type, values: read(), aggregator: 'sum' }),
      reset: () => {},
    } as unknown as Metric);
  register(
    'pawl_requests_total',
    'Requests that an upstream was asked, by how they ended',
    'counter',
    [...ofRelease, 'endpoint', 'status'],
    () =>
      all().flatMap(({ ended }) =>
        [...ended.values()].flatMap((byStatus) =>
          [...byStatus.values()].map(({ labels, count }) => ({
            labels,
            value: count,
            metricName: 'pawl_requests_total',
          })),
        ),
      ),
  );
  const times = (name: string, help: string, which: 'latency' | 'firstByte') =>
    register(name, help, 'histogram', ofRelease, () =>
      all().flatMap((one) => one[which].values(name, { agent: one.agent, release: one.release })),
    );
  times('pawl_request_seconds', 'Time from request to the last byte of the answer', 'latency');
  times('pawl_first_byte_seconds', 'Time from request to the first byte of the answer', 'firstByte');
  return {
    ended({ agent, release, endpoint, status, seconds, firstByteSeconds }) {
      const one = of(releases, agent, release, () => ({
        ...{ agent, release, latency: new Times(), firstByte: new Times() },
        ended: new Map(),
      }));
      of(one.ended, endpoint, status, () => ({ labels: { agent, release, endpoint, status }, count: 0 })).count++;
      one.latency.add(seconds);
      if (firstByteSeconds !== null) one.firstByte.add(firstByteSeconds);
    },
  };
}
