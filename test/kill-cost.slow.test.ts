/**
 * What a SIGKILL costs: an answer is recorded a moment after it was given, and a killed process has not recorded the newest
 * ones. How old the oldest of those was is measured here at 300 requests a second and reported, as one JSON line.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startLoad } from './load.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';
import { startUpstream, type TestUpstream } from './upstream.ts';

const kills = 8;
const callers = 12;
const perSecond = 300;

let upstream: TestUpstream;
let pawl: PawlProcess;
beforeAll(async () => {
  upstream = await startUpstream();
  pawl = await startPawl({ PAWL_UPSTREAM: upstream.url });
});
afterAll(async () => {
  await pawl?.remove();
  await upstream?.close();
});

it('loses only the newest answers, and each of them is one that no row says was given', async () => {
  const found: { unrecorded: number; oldestMs: number; answered: number }[] = [];
  for (let i = 0; i < kills; i++) {
    const prefix = `cost-${i}`;
    const load = startLoad({
      url: () => pawl.url,
      key: pawl.key,
      callers,
      prefix,
      everyMs: (1000 * callers) / perSecond,
    });
    // A different moment each time, and never before there is something to lose.
    const end = Date.now() + 1200 + ((i * 397) % 1000);
    await until(
      () => load.answered.size,
      (n) => n >= 50 && Date.now() >= end,
      5,
    );
    const killedAt = Date.now();
    await pawl.kill('SIGKILL');
    const given = [...load.answeredAt].filter(([, at]) => at <= killedAt);
    await load.stop();

    pawl = await pawl.restart();
    const store = await pawl.store();
    await until(
      async () => (await (await fetch(`${pawl.url}/healthz`)).json()) as { recording: { sinkLagMs: number } },
      ({ recording }) => recording.sinkLagMs === 0,
    );
    const rows = await store.pool.query<{ trajectory: string }>(
      `select trajectory from pawl.turns where trajectory like '${prefix}-%'`,
    );
    await store.close();
    const recorded = new Set(rows.rows.map(({ trajectory }) => trajectory));
    expect(rows.rows).toHaveLength(recorded.size);
    const missing = given.filter(([id]) => !recorded.has(id)).map(([, at]) => killedAt - at);
    found.push({ unrecorded: missing.length, oldestMs: Math.max(0, ...missing), answered: given.length });
    expect(recorded.size).toBeGreaterThan(0);
  }
  console.log(
    JSON.stringify({
      max_unrecorded_ms: Math.max(...found.map(({ oldestMs }) => oldestMs)),
      max_unrecorded: Math.max(...found.map(({ unrecorded }) => unrecorded)),
      per_second: perSecond,
      kills: found,
    }),
  );
}, 900_000);
