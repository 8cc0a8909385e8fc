/**
 * What the gateway costs with recording on. The same load goes, in turns, to a bare proxy (node:http in, undici's dispatch
 * out, nothing else) and to `pawl serve` writing every turn to Postgres. Upstream, load, bare proxy and Pawl are processes
 * of their own; all share this machine's cores, Postgres included, so Pawl pays for its recording inside the figure.
 *
 *   throughput: as many requests as 32 connections carry, short rounds, alternating; the ratio is the median over rounds
 *   sustained:  answers over the round and the time until the last of its turns was in the database: what is put off shows;
 *               its ratio is that to the bare proxy's answers of the same round
 *   overhead:   a fixed 300 requests/s, alternating; percentile of Pawl minus percentile of bare, median over rounds
 *   lost:       answers Pawl gave less turns in the database, after draining
 *
 * Pawl runs as users run it: built, not from source. With `--turns 50` the conversations grow as an agent's do: each call sends all that
 * was said before, up to fifty turns of 400 bytes a message.
 *
 * `cpu_us` is the processor time of a request by part, over all rounds at full load and the time it took to record them; it is
 * hardly changed by what else the machine does. `--tree` measures another built checkout with this load.
 *
 * Options: --rounds 7 --paced 7 (rounds at 300/s) --seconds 4 --stream --turns 1 --tree DIR --profile DIR (V8's profiles of Pawl's threads go there)
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Pool } from 'undici';
import type { RecorderStats } from '../src/collect/recorder.ts';
import { createKey } from '../src/store/keys.ts';
import { openStore } from '../src/store/postgres.ts';
import { startUpstream } from '../test/upstream.ts';
import { type PerRequest, perRequest, readProcessors } from './processor-time.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values: options } = parseArgs({
  options: {
    role: { type: 'string', default: 'main' },
    rounds: { type: 'string', default: '7' },
    paced: { type: 'string' },
    seconds: { type: 'string', default: '4' },
    target: { type: 'string', default: '' },
    stream: { type: 'boolean', default: false },
    turns: { type: 'string', default: '1' },
    tree: { type: 'string' },
    profile: { type: 'string' },
  },
});

const words = 'Where it is now, and when it will come, is what I would like to know before the end of the week. ';
const said = (customer: number, turn: number) => `${turn}, from customer ${customer}: ${words.repeat(4)}`;

/** One agent's instructions and tools, another customer each time. */
const body = (stream: boolean, customer: number, turns: number) =>
  JSON.stringify({
    model: 'echo',
    stream,
    messages: [
      { role: 'system', content: `You are the support agent of a shop. ${'Follow the policy with care. '.repeat(30)}` },
      {
        role: 'user',
        content: `Where is my order ${4821 + customer}? I ordered it last week and it has not arrived yet.`,
      },
      { role: 'assistant', content: 'Let me look that up for you.' },
      { role: 'user', content: 'Thanks. My mail address is ann@example.com, in case you need it.' },
      ...Array.from({ length: 2 * (turns - 1) }, (_, i) => ({
        role: i % 2 === 0 ? 'assistant' : 'user',
        content: said(customer, i),
      })),
    ],
    tools: [
      { type: 'function', function: { name: 'find_order', parameters: { type: 'object', properties: { order: {} } } } },
    ],
  });

type Payload = { readonly body: string; readonly conversation: string };

/** Of a thousand customers one call each, or of twenty at a time all the calls of a conversation, side by side. */
function bodiesOf(stream: boolean, turns: number): string[][] {
  const atOnce = turns === 1 ? 1000 : 20;
  return Array.from({ length: turns }, (_, turn) =>
    Array.from({ length: atOnce }, (_, customer) => body(stream, customer, turn + 1)),
  );
}

function* payloads(bodies: readonly string[][]): Generator<Payload> {
  for (let round = 0; ; round++)
    for (const all of bodies)
      for (const [customer, one] of all.entries()) yield { body: one, conversation: `${round}-${customer}` };
}

/** The least a proxy can do: read the body, send it on, send the answer back. */
async function bare(target: string): Promise<void> {
  const url = new URL(target);
  const pool = new Pool(url.origin, { connections: 512 });
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      pool.dispatch(
        {
          path: request.url!,
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks),
        },
        {
          onRequestStart() {},
          onResponseStart(_controller, status, headers) {
            delete headers['transfer-encoding'];
            delete headers.connection;
            delete headers['keep-alive'];
            response.writeHead(status, headers);
          },
          onResponseData(controller, chunk) {
            if (!response.write(chunk)) {
              controller.pause();
              response.once('drain', () => controller.resume());
            }
          },
          onResponseEnd: () => void response.end(),
          onResponseError: () => void response.destroy(),
        },
      );
    });
  });
  await listen(server);
}

async function listen(server: ReturnType<typeof createServer>) {
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.send!({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}

type LoadOrder = { target: string; key: string; seconds: number; rate: number | null };
type LoadResult = { ok: number; failed: number; seconds: number; latencies: number[] };

/** Obeys orders from the parent: `rate` null is as fast as 32 connections carry, else so many requests a second. */
function load(): void {
  const pools = new Map<string, Pool>();
  // Made once and before the clock: a thousand long bodies take a tenth of a second, and whatever was due meanwhile would be sent at once.
  const bodies = bodiesOf(options.stream, Number(options.turns));
  process.on('message', (order: LoadOrder) => {
    const url = new URL(order.target);
    const pool = pools.get(url.origin) ?? new Pool(url.origin, { connections: 128 });
    pools.set(url.origin, pool);
    const calls = payloads(bodies);
    const common = { 'content-type': 'application/json', authorization: `Bearer ${order.key}` };
    const life = `${process.pid}-${Date.now()}`;
    const latencies: number[] = [];
    let ok = 0;
    let failed = 0;
    let open = 0;
    const began = performance.now();
    const end = began + order.seconds * 1000;
    const report = () => {
      const result: LoadResult = { ok, failed, seconds: (performance.now() - began) / 1000, latencies };
      process.send!(result);
    };
    const send = (then: () => void) => {
      const sent = performance.now();
      open++;
      let status = 0;
      const call = calls.next().value as Payload;
      const headers = bodies.length === 1 ? common : { ...common, 'x-pawl-trajectory': `${life}-${call.conversation}` };
      const settle = (good: boolean) => {
        open--;
        if (good) ok++;
        else failed++;
        latencies.push(performance.now() - sent);
        then();
      };
      pool.dispatch(
        { path: '/v1/chat/completions', method: 'POST', headers, body: call.body },
        {
          onRequestStart() {},
          onResponseStart(_controller, code) {
            status = code;
          },
          onResponseData() {},
          onResponseEnd: () => settle(status === 200),
          onResponseError: () => settle(false),
        },
      );
    };
    if (order.rate === null) {
      const again = () => {
        if (performance.now() < end) send(again);
        else if (open === 0) report();
      };
      for (let i = 0; i < 32; i++) send(again);
      return;
    }
    let due = began;
    const tick = () => {
      const now = performance.now();
      while (due <= now && due < end) {
        send(() => {});
        due += 1000 / order.rate!;
      }
      if (due < end) setTimeout(tick, Math.max(0, due - performance.now()));
      else if (open > 0) setTimeout(tick, 5);
      else report();
    };
    tick();
  });
  process.send!({ url: 'ready' });
}

function child(role: string, args: string[] = []): ChildProcess {
  return spawn(process.execPath, ['--import', 'tsx', fileURLToPath(import.meta.url), '--role', role, ...args], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
}

async function urlOf(process: ChildProcess): Promise<string> {
  const [message] = (await once(process, 'message')) as [{ url: string }];
  return message.url;
}

const percentile = (values: number[], p: number) => {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))] ?? Number.NaN;
};
const median = (values: number[]) => percentile(values, 0.5);
/** Of each part over the rounds; null where there is nothing to read. */
const medians = (rounds: readonly PerRequest[]): Record<string, number> | null =>
  rounds[0] === undefined
    ? null
    : Object.fromEntries(
        (Object.keys(rounds[0]) as (keyof PerRequest)[]).map((part) => [
          part,
          round(median(rounds.map((one) => one[part])), 1),
        ]),
      );
const round = (value: number, digits = 2) => Number(value.toFixed(digits));

async function main(): Promise<void> {
  const tree = options.tree ?? root;
  if (options.tree === undefined) execFileSync(process.execPath, ['scripts/build.js', '--quick'], { cwd: root });
  const turns = Number(options.turns);
  if (!Number.isInteger(turns) || turns < 1) throw new Error('--turns must be a whole number above 0.');
  const home = mkdtempSync(join(tmpdir(), 'pawl-bench-'));
  const children: ChildProcess[] = [];
  try {
    const upstream = child('upstream');
    children.push(upstream);
    const upstreamUrl = await urlOf(upstream);
    const bareProcess = child('bare', ['--target', upstreamUrl]);
    const loader = child('load', [...(options.stream ? ['--stream'] : []), '--turns', options.turns]);
    children.push(bareProcess, loader);
    const [bareUrl] = await Promise.all([urlOf(bareProcess), urlOf(loader)]);

    const env = {
      ...process.env,
      PAWL_BUILT: '1',
      PAWL_HOME: home,
      PAWL_PORT: '0',
      PAWL_UPSTREAM: `${upstreamUrl}/v1`,
    };
    const flags = options.profile === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', options.profile];
    const pawl = spawn(process.execPath, [...flags, 'bin/pawl.js', 'serve'], {
      cwd: tree,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(pawl);
    let output = '';
    pawl.stdout!.setEncoding('utf8');
    const pawlUrl = await new Promise<string>((resolve, reject) => {
      pawl.on('exit', (code) => reject(new Error(`pawl serve ended with ${code}:\n${output}`)));
      pawl.stdout!.on('data', (text: string) => {
        output += text;
        const found = /gateway +(http:\S+)\/v1/.exec(output); // the dashboard’s link comes before the database does
        if (found) resolve(found[1]!);
      });
    });
    const store = await openStore({ home, join: true });
    const { token } = await createKey(store, { agent: 'bench', name: 'bench' });
    await new Promise((resolve) => setTimeout(resolve, 1000)); // the gateway hears of the new key

    const order = async (target: string, seconds: number, rate: number | null): Promise<LoadResult> => {
      loader.send({ target, key: token, seconds, rate } satisfies LoadOrder);
      const [result] = (await once(loader, 'message')) as [LoadResult];
      return result;
    };
    const backlog = async () => {
      for (;;) {
        // Not /metrics: putting all figures together every 50 ms would be a part of what is measured.
        const health = (await (await fetch(`${pawlUrl}/healthz`)).json()) as { recording: RecorderStats };
        const { queueDepth, journalled, recorded } = health.recording;
        if (queueDepth === 0 && journalled === recorded) return;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    };

    const rounds = Number(options.rounds);
    const seconds = Number(options.seconds);
    let sent = 0;
    const count = (result: LoadResult) => {
      sent += result.ok;
      if (result.failed > 0) console.error(`  ${result.failed} requests failed`);
      return result;
    };
    console.error('warming up');
    await order(bareUrl, 2, null);
    count(await order(pawlUrl, 2, null));
    await backlog();

    const pids = { load: loader.pid!, upstream: upstream.pid!, bare: bareProcess.pid!, pawl: pawl.pid! };
    const processors: { bare: PerRequest[]; pawl: PerRequest[] } = { bare: [], pawl: [] };
    const bareRps: number[] = [];
    const pawlRps: number[] = [];
    const sustainedRps: number[] = [];
    for (let i = 0; i < rounds; i++) {
      const began = readProcessors(pids);
      const b = await order(bareUrl, seconds, null);
      const between = readProcessors(pids);
      const p = count(await order(pawlUrl, seconds, null));
      bareRps.push(b.ok / b.seconds);
      pawlRps.push(p.ok / p.seconds);
      const answered = performance.now();
      await backlog(); // what is left of Pawl's round must not slow the next bare one
      sustainedRps.push(p.ok / (p.seconds + (performance.now() - answered) / 1000));
      const ended = readProcessors(pids);
      if (began !== null && between !== null && ended !== null) {
        processors.bare.push(perRequest(began, between, b.ok, { by: 'bare', pid: pids.bare }));
        processors.pawl.push(perRequest(between, ended, p.ok, { by: 'pawl', pid: pids.pawl }));
      }
      const last = (values: number[]) => values.at(-1)!.toFixed(0);
      console.error(
        `  round ${i + 1}: bare ${last(bareRps)}/s, pawl ${last(pawlRps)}/s, all recorded ${last(sustainedRps)}/s`,
      );
    }
    const p50: number[] = [];
    const p99: number[] = [];
    for (let i = 0; i < Number(options.paced ?? rounds); i++) {
      const b = await order(bareUrl, seconds, 300);
      const p = count(await order(pawlUrl, seconds, 300));
      p50.push(percentile(p.latencies, 0.5) - percentile(b.latencies, 0.5));
      p99.push(percentile(p.latencies, 0.99) - percentile(b.latencies, 0.99));
      console.error(
        `  300/s round ${i + 1}: overhead p50 ${p50.at(-1)!.toFixed(2)} ms, p99 ${p99.at(-1)!.toFixed(2)} ms`,
      );
    }
    await backlog();
    const { count: recorded } = await store.db
      .selectFrom('turns')
      .where('agent', '=', 'bench')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    await store.close();
    pawl.removeAllListeners('exit');
    pawl.kill('SIGTERM');
    await once(pawl, 'exit');
    console.log(
      JSON.stringify({
        bare_rps: round(median(bareRps), 0),
        pawl_rps: round(median(pawlRps), 0),
        ratio: round(median(pawlRps.map((p, i) => p / bareRps[i]!)), 3),
        sustained_rps: round(median(sustainedRps), 0),
        sustained_ratio: round(median(sustainedRps.map((p, i) => p / bareRps[i]!)), 3),
        p50_overhead_ms: round(median(p50)),
        p99_overhead_ms: round(median(p99)),
        sent,
        recorded: Number(recorded),
        lost: sent - Number(recorded),
        rounds,
        turns,
        stream: options.stream,
        cpu_us: { bare: medians(processors.bare), pawl: medians(processors.pawl) },
      }),
    );
  } finally {
    for (const process of children) process.kill();
    rmSync(home, { recursive: true, force: true });
  }
}

if (options.role === 'bare') await bare(options.target);
else if (options.role === 'load') load();
else if (options.role === 'upstream') {
  const { url } = await startUpstream();
  process.send!({ url: url.replace(/\/v1$/, '') });
} else await main();
