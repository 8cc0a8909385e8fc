/** What must hold when things go wrong, each with real processes: database away, upstream misbehaving, bad input, SIGTERM. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { feedback } from '../src/score/feedback.ts';
import { scoreWindow } from '../src/score/run.ts';
import { weighted } from '../src/score/weighted.ts';
import { processStart } from '../src/store/lock.ts';
import type { Store } from '../src/store/postgres.ts';
import { listScores } from '../src/store/scores.ts';
import { readTrajectory } from '../src/store/trajectories.ts';
import { startLoad } from './load.ts';
import { holdDatabase, isThorough, type PawlProcess, startPawl, until } from './pawl.ts';
import { startUpstream, type TestUpstream } from './upstream.ts';

let upstream: TestUpstream;
let fallback: TestUpstream;
let pawl: PawlProcess;
let store: Store;
beforeAll(async () => {
  upstream = await startUpstream();
  fallback = await startUpstream();
  pawl = await startPawl({ PAWL_UPSTREAM: upstream.url });
  store = await pawl.store();
});
afterAll(async () => {
  await store?.close();
  await pawl?.remove();
  await upstream?.close();
  await fallback?.close();
});

const post = async (path: string, body: string | Uint8Array | object, headers: Record<string, string> = {}) => {
  const raw = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
  const response = await fetch(pawl.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${pawl.key}`, ...headers },
    body: raw as string,
  });
  return response;
};
const ask = (id: string, model: string, more: object = {}) =>
  post(`/t/${id}/v1/chat/completions`, { model, messages: [{ role: 'user', content: 'Hello there' }], ...more });
const turnOf = async (id: string) =>
  (await until(
    () => readTrajectory(store, id),
    (found) => (found?.turns.length ?? 0) > 0,
  ))!.turns[0]!;
const metric = async (name: string) =>
  Number(
    new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, 'm').exec(await (await fetch(`${pawl.url}/metrics`)).text())?.[1] ??
      0,
  );

const postmaster = () =>
  Number(readFileSync(join(pawl.home, 'postgres', 'data', 'postmaster.pid'), 'utf8').split('\n')[0]);
const countOf = async (sql: string) => (await store.pool.query<{ n: number }>(sql)).rows[0]!.n;

describe('an upstream that misbehaves', () => {
  it('is asked again after 429 and 503, and the turn says how often', async () => {
    expect((await ask('busy', 'busy-1')).status).toBe(200);
    expect((await ask('down', 'down-2')).status).toBe(200);
    expect(await turnOf('busy')).toMatchObject({ status: 'ok', attempts: 2 });
    expect(await turnOf('down')).toMatchObject({ status: 'ok', attempts: 3 });
  });

  it('that keeps failing gives the caller its own error in OpenAI’s shape', async () => {
    const response = await ask('always-busy', 'busy-99');
    expect(response.status).toBe(429);
    expect(await response.json()).toMatchObject({ error: { type: 'rate_limit_error' } });
    expect(await turnOf('always-busy')).toMatchObject({ status: 'error', httpStatus: 429, attempts: 3 });
  });

  it('that answers with HTML gives the caller JSON', async () => {
    const response = await ask('html', 'html-500');
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({ error: { code: 'upstream_error' } });
  });

  it('that cuts a stream between events ends it with an error event', async () => {
    const text = await (await ask('cut', 'cut', { stream: true })).text();
    const events = text.split('\n\n').filter(Boolean);
    expect(JSON.parse(events.at(-1)!.slice('data: '.length))).toMatchObject({ error: { code: 'upstream_error' } });
    const turn = await turnOf('cut');
    expect(turn).toMatchObject({ status: 'truncated', stream: true });
    expect('You said: Hello there'.startsWith(turn.choices[0]!.message.content as string)).toBe(true);
    expect(turn.choices[0]!.message.content).not.toBe('');
  });

  it('that cuts a stream inside an event breaks the caller’s connection too', async () => {
    const response = await ask('cut-event', 'cut-event', { stream: true });
    await expect(response.text()).rejects.toThrow();
    expect(await turnOf('cut-event')).toMatchObject({ status: 'truncated' });
  });

  it('that sends malformed SSE is passed on unchanged and recorded as far as it made sense', async () => {
    const text = await (await ask('malformed', 'malformed', { stream: true })).text();
    expect(text).toContain('data: {not json\n\n');
    expect(text).toContain('[DONE]');
    const turn = await turnOf('malformed');
    expect(turn.choices[0]!.message.content).toBe('You said: Hello there');
    expect(turn.error).not.toBeNull();
  });

  it('is told to stop when the caller leaves, and the turn says so', async () => {
    const before = upstream.aborted;
    const controller = new AbortController();
    const response = await fetch(`${pawl.url}/t/left/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${pawl.key}` },
      body: JSON.stringify({
        model: 'hang-midway',
        stream: true,
        messages: [{ role: 'user', content: 'Hello there' }],
      }),
      signal: controller.signal,
    });
    await response.body!.getReader().read();
    controller.abort();
    await until(
      () => upstream.aborted,
      (aborted) => aborted > before,
    );
    expect(await turnOf('left')).toMatchObject({ status: 'disconnected' });
  });

  it('does not fill memory when the caller reads slowly', async () => {
    const before = await metric('process_resident_memory_bytes');
    const response = await ask('flood', 'flood', { stream: true });
    const reader = response.body!.getReader();
    await reader.read();
    await new Promise((resolve) => setTimeout(resolve, 2000)); // 200 MB wait at the upstream meanwhile, not in Pawl
    expect((await metric('process_resident_memory_bytes')) - before).toBeLessThan(120 * 1024 * 1024);
    await reader.cancel();
    expect(await turnOf('flood')).toMatchObject({ status: 'disconnected' });
  });
});

describe('an upstream that is away or hangs', () => {
  it('gives a clean 502 or 504, or the fallback’s answer', async () => {
    const config = join(pawl.home, 'pawl.config.ts');
    writeFileSync(
      config,
      `export default { upstreams: {
        gone: { baseUrl: 'http://127.0.0.1:1/v1' },
        silent: { baseUrl: ${JSON.stringify(upstream.url)}, models: ['hang'], silenceSeconds: 1 },
        guarded: { baseUrl: 'http://127.0.0.1:1/v1', models: ['echo'], fallback: 'spare' },
        spare: { baseUrl: ${JSON.stringify(fallback.url)} },
      } };`,
    );
    const second = await startPawl({}, undefined, undefined, ['--config', config]);
    try {
      const call = (model: string) =>
        fetch(`${second.url}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${second.key}` },
          body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello there' }] }),
        });
      const gone = await call('anything');
      expect([gone.status, ((await gone.json()) as { error: { code: string } }).error.code]).toEqual([
        502,
        'upstream_unreachable',
      ]);
      const silent = await call('hang');
      expect([silent.status, ((await silent.json()) as { error: { code: string } }).error.code]).toEqual([
        504,
        'upstream_timeout',
      ]);
      const guarded = await call('echo');
      expect(guarded.status).toBe(200);
      expect(fallback.calls.get('echo')).toBe(1);
    } finally {
      await second.remove();
    }
  });
});

describe('bad input', () => {
  const chat = '/v1/chat/completions';
  const code = async (response: Response) => [
    response.status,
    ((await response.json()) as { error: { code: string } }).error.code,
  ];

  it('gets a clear 4xx and disturbs nobody', async () => {
    const load = startLoad({ url: () => pawl.url, key: pawl.key, callers: 2, prefix: 'beside' });
    onTestFinished(() => load.stop());
    expect(await code(await post(chat, Buffer.alloc(100 * 1024 * 1024, 0x20)))).toEqual([413, 'body_too_large']);
    const many = { model: 'echo', messages: Array.from({ length: 10_000 }, () => ({ role: 'user', content: 'x' })) };
    expect(await code(await post(chat, many))).toEqual([400, 'too_many_messages']);
    expect(await code(await post(chat, `{"model":"echo","messages":${'['.repeat(100_000)}`))).toEqual([
      400,
      'too_deep',
    ]);
    expect(await code(await post(chat, '{"model":"echo","messages":[],"__proto__":{"a":1}}'))).toEqual([
      400,
      'forbidden_key',
    ]);
    expect(await code(await post(chat, Buffer.from([0x7b, 0x22, 0xff, 0x22])))).toEqual([400, 'invalid_utf8']);
    expect(await code(await post(chat, 'not json'))).toEqual([400, 'invalid_json']);
    expect(await code(await post(chat, '{}', { 'content-encoding': 'zstd' }))).toEqual([415, 'unsupported_encoding']);
    expect(await code(await post(chat, '{}', { 'content-encoding': 'gzip' }))).toEqual([400, 'invalid_encoding']);
    expect(await code(await post('/t/a%20b/v1/chat/completions', '{}'))).toEqual([400, 'invalid_trajectory_id']);
    expect(await code(await fetch(pawl.url + chat, { headers: { authorization: `Bearer ${pawl.key}` } }))).toEqual([
      405,
      'method_not_allowed',
    ]);
    await load.stop();
    expect(load.failures).toEqual([]);
    expect(load.answered.size).toBeGreaterThan(0);
  });

  it('that never arrives whole is forgotten', async () => {
    const before = await metric('pawl_requests_in_flight');
    await new Promise<void>((resolve) => {
      const half = request(`${pawl.url}${chat}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${pawl.key}`, 'content-length': '1000' },
      });
      half.on('error', () => resolve());
      half.on('socket', (socket) => socket.on('connect', () => half.write('{"model":', () => half.destroy())));
    });
    await until(
      () => metric('pawl_requests_in_flight'),
      (n) => n === before,
    );
    expect((await ask('after-half', 'echo')).status).toBe(200);
  });
});

describe('signals', () => {
  it('may come before the trajectory, by business key, and twice', async () => {
    const outcome = { key: 'order:77', name: 'resolved', value: true };
    expect((await post('/v1/outcomes', outcome)).status).toBe(202);
    expect((await post('/v1/outcomes', outcome)).status).toBe(202);
    const answer = await post(
      '/t/with-order/v1/chat/completions',
      { model: 'echo', messages: [{ role: 'user', content: 'x' }] },
      { 'x-pawl-key': 'order:77' },
    );
    const turn = answer.headers.get('x-pawl-turn')!;
    for (const vote of ['down', 'up'])
      expect(
        (await post('/v1/feedback', { turn, vote, user: 'ann', comment: 'mail me at ann@example.com' })).status,
      ).toBe(202);
    const { signals } = (await until(
      () => readTrajectory(store, 'with-order'),
      (found) =>
        found !== undefined &&
        found !== null &&
        found.signals.length >= 2 &&
        found.signals.some((s) => s.value === 1 && s.kind === 'feedback'),
    ))!;
    expect(
      signals.map(({ kind, name, value }) => ({ kind, name, value })).toSorted((a, b) => a.kind.localeCompare(b.kind)),
    ).toEqual([
      { kind: 'feedback', name: 'vote', value: 1 },
      { kind: 'outcome', name: 'resolved', value: 1 },
    ]);
    expect(JSON.stringify(signals)).not.toContain('ann@example.com');
  });

  it('in a storm, a user’s votes count once, and the others of the same key beside it once', async () => {
    const model = 'echo';
    await post(
      '/t/stormy/v1/chat/completions',
      { model, messages: [{ role: 'user', content: 'x' }] },
      { 'x-pawl-user': 'ann' },
    );
    const vote = (user: string, vote: string) => post('/v1/feedback', { trajectory: 'stormy', vote, user });
    const storm = [
      ...Array.from({ length: 60 }, () => vote('ann', 'up')),
      ...Array.from({ length: 10 }, (_, i) => vote(`nobody ${i}`, 'down')),
    ];
    expect(new Set((await Promise.all(storm)).map(({ status }) => status))).toEqual(new Set([202]));
    const recorded = await until(
      () => readTrajectory(store, 'stormy'),
      (found) => found?.signals.length === 11,
    );
    const { agent } = recorded!.trajectory;
    const spec = weighted({ votes: [1, feedback()] });
    const now = new Date();
    await scoreWindow(store, { agent, spec, since: new Date(+now - 3_600_000), until: now, now });
    expect(await listScores(store, 'stormy')).toMatchObject([{ total: 0.5, parts: { votes: { reason: '2 voters' } } }]);
  });

  it('that say nothing are refused', async () => {
    expect((await post('/v1/feedback', { vote: 'up' })).status).toBe(400);
    expect((await post('/v1/outcomes', { key: 'order:1', value: 1 })).status).toBe(400);
  });
});

it('writes no personal data or secrets of requests and answers to disk', async () => {
  const said = 'I am max.muster@example.org, card 4111 1111 1111 1111, key ghp_0123456789abcdefghijABCDEFGHIJ012345';
  await ask('private', 'echo', { messages: [{ role: 'user', content: said }], user: 'max.muster@example.org' });
  const turn = await turnOf('private');
  const text = JSON.stringify(turn);
  expect(text).toContain('[EMAIL_1]');
  for (const secret of ['max.muster', '4111 1111', 'ghp_0123']) expect(text).not.toContain(secret);
  const files = readdirSync(pawl.home, { recursive: true, encoding: 'utf8' }).map((file) => join(pawl.home, file));
  for (const file of files) {
    if (!statSync(file, { throwIfNoEntry: false })?.isFile()) continue;
    const bytes = readFileSync(file);
    for (const secret of ['max.muster', '4111 1111 1111 1111', 'ghp_0123456789'])
      expect(bytes.includes(secret), `${file} holds ${secret}`).toBe(false);
  }
});

it('answers everybody while the database is stopped, and has every trajectory exactly once afterwards', async () => {
  const load = startLoad({ url: () => pawl.url, key: pawl.key, callers: 8, prefix: 'outage', feedback: true });
  await until(
    () => load.answered.size,
    (n) => n > 50,
  );
  const held = holdDatabase(pawl.home);
  const atStop = load.answered.size;
  try {
    // What was on its way back is counted; from then on nothing reaches the database.
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    const recorded = await metric('pawl_recorded_total');
    await new Promise((resolve) => setTimeout(resolve, isThorough ? 55_000 : 10_000));
    expect(await metric('pawl_recorded_total')).toBe(recorded);
    expect(await metric('pawl_record_lag_seconds')).toBeGreaterThan(isThorough ? 50 : 12);
  } finally {
    held.release();
  }
  await load.stop();
  expect(load.failures).toEqual([]);
  expect(load.answered.size).toBeGreaterThan(atStop + 100);
  const expected = load.answered.size;
  const counts = await until(
    async () => {
      const { rows } = await store.pool.query<{ trajectories: number; turns: number; votes: number; uneven: number }>(
        `select (select count(*) from pawl.trajectories where id like 'outage-%') as trajectories,
                (select count(*) from pawl.turns where trajectory like 'outage-%') as turns,
                (select count(*) from pawl.signals where target_id like 'outage-%') as votes,
                (select count(*) from pawl.trajectories where id like 'outage-%' and turns <> 1) as uneven`,
      );
      return rows[0]!;
    },
    (c) => c.turns >= expected && c.votes >= load.acknowledged.size,
    250,
  );
  expect(counts).toEqual({ trajectories: expected, turns: expected, votes: load.acknowledged.size, uneven: 0 });
}, 300_000);

it('answers everybody while the disk takes no more, counts what it could not record, and says so', async () => {
  // The second Pawl uses the first one's database as its own server, and may write files of 64 kB only.
  const full = await startPawl(
    { DATABASE_URL: store.url, PAWL_UPSTREAM: upstream.url },
    undefined,
    pawl,
    [],
    ['bash', '-c', 'ulimit -f 64; exec "$@"', '--'],
  );
  try {
    const load = startLoad({ url: () => full.url, key: pawl.key, callers: 4, prefix: 'full' });
    const droppedNow = async () => {
      const text = await (await fetch(`${full.url}/metrics`)).text();
      return Number(/^pawl_record_dropped_total\{reason="disk"\} (\d+)/m.exec(text)?.[1] ?? 0);
    };
    await until(droppedNow, (dropped) => dropped > 20);
    await load.stop();
    expect(load.failures).toEqual([]);
    const health = (await (await fetch(`${full.url}/healthz`)).json()) as { status: string; problems: string[] };
    expect(health.status).toBe('degraded');
    expect(health.problems.join()).toMatch(/could not be recorded/);
  } finally {
    await full.remove();
  }
});

it('answers everybody while the database server is killed, and starts it again', async () => {
  const load = startLoad({ url: () => pawl.url, key: pawl.key, callers: 4, prefix: 'killed', feedback: true });
  await until(
    () => load.answered.size,
    (n) => n > 20,
  );
  await store.close();
  process.kill(postmaster(), 'SIGKILL');
  const atKill = load.answered.size;
  await until(
    () => load.answered.size,
    (n) => n > atKill + 100,
  );
  store = await until(
    () => pawl.store().catch(() => null),
    (opened) => opened !== null,
  ).then((opened) => opened!);
  await load.stop();
  expect(load.failures).toEqual([]);
  const recorded = await until(
    () => countOf(`select count(*) as n from pawl.turns where trajectory like 'killed-%'`),
    (n) => n >= load.answered.size,
  );
  expect(recorded).toBe(load.answered.size);
});

it('on SIGTERM answers what is in flight, writes it down and leaves nothing running', async () => {
  const load = startLoad({ url: () => pawl.url, key: pawl.key, callers: 8, prefix: 'drain' });
  await until(
    () => load.answered.size,
    (n) => n > 20,
  );
  await store.close();
  const server = postmaster();
  await pawl.kill('SIGTERM');
  expect(pawl.process.exitCode).toBe(0);
  expect(processStart(server)).toBeNull();
  await load.stop();
  // Callers that had been let in were answered; those that came after found the door closed.
  expect(load.failures.filter(({ reason }) => !reason.includes('fetch failed'))).toEqual([]);
  pawl = await pawl.restart();
  store = await pawl.store();
  const recorded = await until(
    () => countOf(`select count(*) as n from pawl.turns where trajectory like 'drain-%'`),
    (count) => count >= load.answered.size,
  );
  expect(recorded).toBe(load.answered.size);
});
