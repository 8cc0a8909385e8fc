/** Checks that an agent's file declares, on a real database and beside a server that speaks Prometheus' wire format. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { JournalEntry } from '../collect/signal.ts';
import { parseConfig } from '../config.ts';
import { entry, noon } from '../store/fixtures.ts';
import { writeEntries } from '../store/record.ts';
import { withStore } from '../store/test-store.ts';
import { judge } from './checks/all.ts';
import { traffic } from './fixtures.ts';
import { createRelease, look, reconcile, serveRelease, startRollout } from './reconcile.ts';
import { type RolloutSettings, rolloutSettings } from './rollout.ts';

const second = 1000;
const base = {
  ...{ holdSeconds: 60, patienceSeconds: 600, minTurns: 20, minUnits: 10, outcome: null, shadow: { share: 0 } },
} as const;
type Declared = RolloutSettings['checks'][number] | Record<string, unknown>;

async function begin(checks: readonly Declared[]) {
  const store = await withStore();
  const release = (name: string) =>
    createRelease(store, { agent: 'desk', name, upstream: 'local', model: name }, 'ann', noon);
  await serveRelease(store, await release('v1'), 'ann', noon);
  const report = { id: 'report-1', verdict: 'pass', baseline: 'v1', candidate: 'v2' } as const;
  const settings = { ...base, checks: [...checks] as RolloutSettings['checks'] };
  const rollout = await startRollout(
    store,
    { id: 'r1', agent: 'desk', candidate: await release('v2'), report, settings, actor: 'ann' },
    noon,
  );
  return { store, rollout };
}

/** An outcome, or what the user did, of the first so many users of a release. */
const signals = (release: string, users: number, fields: (i: number) => Record<string, unknown> | null) =>
  Array.from({ length: users }, (_, i) => fields(i)).flatMap((given, i): JournalEntry[] => {
    const trajectory = `${release}-${noon}-${i}`;
    const target = { kind: 'trajectory', id: trajectory } as const;
    return given === null
      ? []
      : [entry.signal({ identity: `${trajectory}/${given.name}`, target, kind: 'outcome', at: noon + i, ...given })];
  });
const users = (v1: number, v2: number) => [
  ...traffic({ release: 'v1', users: v1, resolved: v1, from: noon }),
  ...traffic({ release: 'v2', users: v2, resolved: v2, from: noon }),
];
const share = (ones: number) => (i: number) => ({ name: 'escalated', value: i < ones ? 1 : 0 });

describe('a check of signals', () => {
  it('takes back a candidate whose users are certainly worse off, beyond the limit', async () => {
    const { store } = await begin([{ name: 'escalations', signals: 'escalated' }]);
    await writeEntries(store, [...users(190, 20), ...signals('v1', 190, share(19)), ...signals('v2', 20, share(20))]);
    const [done] = await reconcile(store, { now: noon + second });
    expect(done).toMatchObject({
      rollout: { phase: 'rolled-back' },
      measurements: { escalations: { baseline: { n: 190, sum: 19 }, candidate: { n: 20, sum: 20 } } },
    });
    expect(done!.decision.reasons).toEqual([
      'escalations: candidate 1.000 of 20 users, baseline 0.100 of 190; more than 1.5 × the baseline’s, and chance does not explain it.',
    ]);
  });

  it('computes: only votes below a half, and only of those who tried again', async () => {
    const { store, rollout } = await begin([
      { name: 'lost', signals: 'feedback < 0.5 and retried', needed: false },
      { name: 'minutes', signals: 'max(0, minutes - 10) / 10', better: 'lower', ratio: 2 },
    ]);
    await writeEntries(store, [
      ...users(20, 20),
      ...signals('v1', 20, () => ({ name: 'minutes', value: 15 })),
      ...signals('v2', 20, (i) => ({ name: 'minutes', value: i === 0 ? 5 : 20 })),
      ...signals('v2', 10, (i) => ({ kind: 'feedback', name: 'vote', value: i < 4 ? 0 : 1 })),
      ...signals('v2', 2, () => ({ kind: 'event', name: 'retried', value: null })),
    ]);
    const { measurements, decision } = await look(store, rollout, noon + second);
    // Ten voted; two of the four who voted down tried again.
    expect(measurements.lost).toMatchObject({ baseline: { n: 0 }, candidate: { n: 10, sum: 2 } });
    expect(measurements.minutes).toMatchObject({ baseline: { n: 20, sum: 10 }, candidate: { n: 20, sum: 19 } });
    const ends = Object.fromEntries(decision.checks.map(({ name, end }) => [name, end]));
    expect(ends).toMatchObject({ lost: 'unmeasured', minutes: 'pass' });
  });

  it('holds a step while a needed one has no signals, and goes on without one that is not needed', async () => {
    const enough = users(380, 20);
    const waits = await begin([{ name: 'escalations', signals: 'escalated' }]);
    await writeEntries(waits.store, enough);
    expect((await reconcile(waits.store, { now: noon + 61 * second }))[0]!.decision).toMatchObject({
      kind: 'hold',
      reasons: ['Too few users with escalations to tell: baseline 0, candidate 0, each needs 10.'],
    });
    const goes = await begin([{ name: 'escalations', signals: 'escalated', needed: false }]);
    await writeEntries(goes.store, enough);
    expect((await reconcile(goes.store, { now: noon + 61 * second }))[0]!.decision.kind).toBe('advance');
  });

  it('counts every conversation, however many there are', async () => {
    const { store, rollout } = await begin([{ name: 'escalations', signals: 'escalated' }]);
    const many = 5_500; // more than are read at a time
    // The first went well, and those that came last did not.
    const badly = (i: number) => ({ name: 'escalated', value: i < 5_000 ? 0 : 1 });
    const entries = [...users(200, many), ...signals('v1', 200, share(0)), ...signals('v2', many, badly)];
    for (let at = 0; at < entries.length; at += 2_000) await writeEntries(store, entries.slice(at, at + 2_000));
    const { measurements } = await look(store, rollout, noon + 60 * second);
    expect(measurements.escalations).toMatchObject({ candidate: { n: many, sum: 500, squares: 500 } });
  });

  it('shares the error probability with every other check', () => {
    const one = { name: 'one', signals: 'one' };
    const of = (n: number) =>
      rolloutSettings.parse({ ...base, checks: Array.from({ length: n }, (_, i) => ({ ...one, name: `one-${i}` })) });
    const sample = (ones: number, n: number) => ({ n, sum: ones, squares: ones });
    const measured = Object.fromEntries(
      Array.from({ length: 20 }, (_, i) => [`one-${i}`, { baseline: sample(30, 300), candidate: sample(17, 45) }]),
    );
    const none = {
      baseline: { ...sample(0, 0), calls: 0, errors: 0 },
      candidate: { ...sample(0, 0), calls: 0, errors: 0 },
    };
    const rest = {
      ratio: { baseline: 0, candidate: 0, share: 0.5 },
      errors: none,
      latency: { baseline: 0, candidate: 0, slow: null },
      feedback: none,
    };
    const end = (n: number) => judge({ ...rest, ...measured }, of(n), 0).find(({ name }) => name === 'one-0')!.end;
    expect(end(1)).toBe('fail');
    expect(end(20)).toBe('inconclusive');
  });
});

describe('a check by Prometheus', () => {
  let server: Server | null = null;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
    server = null;
  });
  /** Answers like Prometheus 3: the value of a release at each point. */
  async function prometheus(valueAt: (release: string, point: number) => number | null) {
    const seen: URLSearchParams[] = [];
    server = createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      const asked = new URLSearchParams(body);
      seen.push(asked);
      const release = /release="([^"]+)"/.exec(asked.get('query')!)![1]!;
      const [start, end, step] = ['start', 'end', 'step'].map((name) => Number(asked.get(name))) as [
        number,
        number,
        number,
      ];
      const values: [number, string][] = [];
      for (let at = start, i = 0; at <= end; at += step, i++) {
        const value = valueAt(release, i);
        if (value !== null) values.push([at, String(value)]);
      }
      const result = values.length === 0 ? [] : [{ metric: { release }, values }];
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ status: 'success', data: { resultType: 'matrix', result } }));
    });
    await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve));
    return { url: `http://127.0.0.1:${(server!.address() as AddressInfo).port}`, seen };
  }
  const query = 'sum(rate(gpu_errors_total{agent="$agent",release="$release"}[2m]))';
  const check = (url: string) => ({ name: 'gpu-errors', prometheus: url, query });
  const found = async (url: string, now: number) => {
    const { store, rollout } = await begin([check(url)]);
    await writeEntries(store, users(380, 20));
    const { decision } = await look(store, rollout, now);
    return { decision, check: decision.checks.find(({ name }) => name === 'gpu-errors')! };
  };

  it('fails where the candidate is beyond the limit for half an hour and more', async () => {
    const { url, seen } = await prometheus((release) => (release === 'v2' ? 4 : 1));
    const { decision, check: one } = await found(url, noon + 3600 * second);
    expect(decision.kind).toBe('rollback');
    expect(one.reason).toBe(
      'gpu-errors: candidate 4, baseline 1, beyond the limit at 12 of the last 12 points; more than 1.5 × the baseline’s, and chance does not explain it.',
    );
    expect(seen.map((asked) => asked.get('query')).sort()[1]).toContain('{agent="desk",release="v2"}');
  });

  it('does not fail for a moment, nor within the limit, nor where a series is missing', async () => {
    const moment = await prometheus((release, point) => (release === 'v2' && point > 22 ? 4 : 1));
    expect((await found(moment.url, noon + 3600 * second)).check.end).toBe('inconclusive');
    server!.close();
    const within = await prometheus((release) => (release === 'v2' ? 1.4 : 1));
    expect((await found(within.url, noon + 3600 * second)).check.end).toBe('pass');
    server!.close();
    const missing = await prometheus((release) => (release === 'v2' ? 4 : null));
    expect((await found(missing.url, noon + 3600 * second)).check).toMatchObject({
      end: 'unmeasured',
      reason: 'gpu-errors: 0 points of both releases, 12 are needed.',
    });
  });

  it('is unmeasured where the server is away, and holds the step', async () => {
    const { decision, check: one } = await found('http://127.0.0.1:1', noon + 61 * second);
    expect(one.end).toBe('unmeasured');
    expect(one.reason).toMatch(/^gpu-errors: http:\/\/127\.0\.0\.1:1 did not say: /);
    expect(decision.kind).toBe('hold');
  });
});

describe('in the agent’s file', () => {
  const problems = (check: Declared, ...more: Declared[]) => {
    try {
      parseConfig({ agents: [{ name: 'desk', deploy: { checks: [check, ...more] as never } }] }, {}, '/');
      return null;
    } catch (error) {
      return (error as Error).message;
    }
  };
  it('is taken as it is meant, or refused with what is wrong', () => {
    expect(problems({ name: 'escalations', signals: 'escalated' })).toBeNull();
    expect(problems({ name: 'gpu', prometheus: 'http://prom:9090', query: 'x{release="$release"}' })).toBeNull();
    expect(problems({ name: 'errors', signals: 'x' })).toMatch(/is the name of a check that every rollout has/);
    expect(problems({ name: 'a', signals: 'escalated +' })).toMatch(/the expression a number .* missing at its end/);
    expect(problems({ name: 'a', prometheus: 'file:///etc/passwd', query: '$release' })).toMatch(/checks/);
    expect(problems({ name: 'a', prometheus: 'http://prom:9090', query: 'up' })).toMatch(/must hold \$release/);
    expect(problems({ name: 'a', signals: 'x', limit: 2 })).toMatch(/limit|checks/);
    expect(problems({ name: 'a', signals: 'x' }, { name: 'a', signals: 'y' })).toMatch(/different names/);
  });
});
