/**
 * `npm start`: the support desk's loop, turned once in front of your eyes. It uses what every installation has and nothing
 * else: `pawl serve` in a process of its own, the gateway for the customers, the API for everything else. A week of traffic
 * takes minutes here; whatever it is stopped in goes on at the next start.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openApi, type PawlApi } from './api.ts';
import { breakIn } from './break.ts';
import { type Desk, sendCustomers } from './customers.ts';
import type { LoopView, Turn } from './loop-view.ts';

const agent = 'support-desk';
const pawl = fileURLToPath(new URL('../../bin/pawl.js', import.meta.url));
const isTerminal = process.stdout.isTTY === true;

const help = `Usage: npm start -- [options]

Turns the loop of the support desk once: customers, training, evaluation, canary. Then traffic goes on until Ctrl-C.

Options:
  --break              no turn: a candidate that learned a trick is stopped, twice
  --once               exit after the turn; writes summary.json into the home folder
  --seed <n>           seed of a new turn (default: its number)
  --conversations <n>  how many customers come before it (default: 240)
  -c, --config <file>  settings file (default: ./pawl.config.ts)
  -h, --help           this text`;

const options = {
  break: { type: 'boolean' },
  once: { type: 'boolean' },
  seed: { type: 'string' },
  conversations: { type: 'string', default: '240' },
  config: { type: 'string', short: 'c' },
  help: { type: 'boolean', short: 'h' },
} as const;

function whole(name: string, text: string, least: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least && value < 2 ** 31) return value;
  throw new Error(`--${name} ${text}: give a whole number from ${least} to ${2 ** 31 - 1}.`);
}

type Server = {
  readonly api: PawlApi;
  readonly child: ChildProcess;
  /** The dashboard, with the token that lets somebody in. */
  readonly page: string;
  stop(): Promise<void>;
};

/** `pawl serve`, which stops when this process is gone; resolves when it answers. What it says is shown. */
async function startServer(config: string | undefined): Promise<Server> {
  const token = randomBytes(32).toString('base64url');
  const args = ['serve', '--stop-with-stdin', ...(config === undefined ? [] : ['--config', config])];
  const child = spawn(process.execPath, [pawl, ...args], {
    env: { ...process.env, PAWL_ADMIN_TOKEN: token },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const gone = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`pawl serve (process ${child.pid}) ended ${signal ? `by ${signal}` : `with code ${code}`}.`);
  });
  gone.catch(() => {}); // whoever waits for it hears of it
  let text = '';
  const address = new Promise<string>((found) => {
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      process.stdout.write(chunk);
      text += chunk;
      const url = /^ +gateway +(\S+)\/v1$/m.exec(text)?.[1];
      if (url !== undefined && text.includes('\n  database ')) found(url);
    });
  });
  const url = await Promise.race([address, gone]);
  const page = `${url}/#token=${token}`;
  console.log(`  server      process ${child.pid}`);
  console.log(`  dashboard   ${page}\n              watch the loop there; the link works until this stops`);
  return {
    api: openApi(url, token),
    page,
    child,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.stdin.end();
      await exited;
    },
  };
}

/** Tokens are not kept, so each start makes a key of its own for the simulated customers and ends the one before. */
async function customersKey(api: PawlApi): Promise<string> {
  const name = 'simulated customers';
  const { keys } = await api<{ keys: { id: string; name: string; revokedAt: string | null }[] }>('GET', '/api/keys');
  for (const key of keys) if (key.name === name && key.revokedAt === null) await api('DELETE', `/api/keys/${key.id}`);
  const scopes = ['call', 'feedback', 'outcomes'];
  const made = await api<{ token: string }>('POST', '/api/keys', { agent, name, origin: 'simulation', scopes });
  return made.token;
}

const readLoop = (api: PawlApi) => api<LoopView>('GET', `/api/loop?agent=${agent}`);

/** A week's customers, and then the turn that learns from them. */
async function beginTurn(desk: Desk, seed: number | undefined, count: number, signal: AbortSignal): Promise<Turn> {
  const { turn: last } = await readLoop(desk.api);
  const number = (last?.number ?? 0) + 1;
  const chosen = seed ?? number;
  console.log(`\nTurn ${number} of the loop, seed ${chosen}. A week in minutes.`);
  const since = Date.now();
  const { resolved } = await sendCustomers(desk, {
    prefix: `turn-${number}-${since.toString(36)}`,
    seed: chosen,
    count,
    signal,
    onVisit: (done) => progress('customers', done / count, `${done} conversations`),
  });
  clear();
  const took = dim(`  ${((Date.now() - since) / 1000).toFixed(0)} s`);
  row('customers', `${count} came through the gateway, ${((resolved / count) * 100).toFixed(1)}% were helped${took}`);
  const window = { since: new Date(since).toISOString(), until: new Date().toISOString() };
  await desk.api('POST', '/api/loop/run', { agent, by: 'demo', seed: chosen, ...window });
  for (;;) {
    signal.throwIfAborted();
    const { turn } = await readLoop(desk.api);
    if (turn !== null && turn.number === number) return turn;
    await sleep(200, undefined, { signal });
  }
}

/** Looks on until the turn has ended or waits for a person; while a candidate is with the users, some come. */
async function watchTurn(desk: Desk, known: readonly string[], signal: AbortSignal): Promise<LoopView> {
  const shown = new Set(known);
  let wave = 0;
  for (;;) {
    signal.throwIfAborted();
    const view = await readLoop(desk.api);
    const turn = view.turn!;
    for (const { stage, lines } of turn.told)
      if (!shown.has(stage)) {
        shown.add(stage);
        clear();
        const seconds = (turn.state.seconds?.[stage] ?? 0).toFixed(0);
        for (const [i, text] of lines.entries())
          row(i === 0 ? stage : '', i === 0 ? `${text}${dim(`  ${seconds} s`)}` : text);
      }
    if (turn.endedAt !== null || view.next.kind === 'ask') return view;
    if (view.progress !== null) progress(view.progress.stage, view.progress.share, view.progress.text);
    const isWithUsers = turn.done.includes('evaluate') && view.rollout?.phase === 'canary';
    if (!isWithUsers) {
      await sleep(300, undefined, { signal });
      continue;
    }
    progress('deploy', view.rollout!.share, `${Math.round(view.rollout!.share * 100)}% of users on the candidate`);
    await sendCustomers(desk, {
      prefix: `turn-${turn.number}-wave-${wave}-${Date.now().toString(36)}`,
      seed: turn.seed * 1000 + wave + 1,
      count: 100,
      signal,
    });
    wave++;
  }
}

/** A few customers every few seconds, so that there is something to look at. */
async function keepTalking(desk: Desk, signal: AbortSignal): Promise<void> {
  for (let wave = 0; ; wave++) {
    const visits = { prefix: `after-${Date.now().toString(36)}`, seed: 1_000_000 + wave, count: 8, signal };
    await sendCustomers(desk, visits);
    await sleep(5_000, undefined, { signal });
  }
}

const dim = (text: string) => (isTerminal ? `\x1b[2m${text}\x1b[0m` : text);
const row = (name: string, text: string) => console.log(`  ${name.padEnd(10)}${text}`);
const clear = () => isTerminal && process.stdout.write('\r\x1b[K');
function progress(name: string, share: number, text: string): void {
  if (!isTerminal) return;
  const full = Math.round(Math.min(1, Math.max(0, share)) * 20);
  const bar = '━'.repeat(full) + '─'.repeat(20 - full);
  process.stdout.write(`\r\x1b[K  ${name.padEnd(10)}${bar}  ${dim(text)}`);
}

/** What a seed decides, and what it took; whole or as it was before. */
function writeSummary({ turn }: LoopView): void {
  const summary = turn?.summary ?? null;
  if (summary === null) return;
  const path = join(resolve(process.env.PAWL_HOME || '.pawl'), 'summary.json');
  writeFileSync(`${path}.new`, `${JSON.stringify(summary, null, 2)}\n`, { flush: true });
  renameSync(`${path}.new`, path);
}

function conclude({ turn, next }: LoopView, url: string): boolean {
  clear();
  const summary = turn!.summary;
  if (summary === null) {
    const why = turn!.endedAt === null ? next.reason : (turn!.ended ?? '');
    console.log(`\nThe turn ${turn!.endedAt === null ? 'waits' : 'has ended'}. ${why}`);
    return false;
  }
  const percent = (share: number) => `${(share * 100).toFixed(1)}%`;
  const points = (share: number) => `${share < 0 ? '−' : '+'}${Math.abs(share * 100).toFixed(1)}`;
  const [low, high] = summary.ci.map(points);
  const { release, phase } = turn!.state.deploy!;
  const { dataset } = turn!.state.curate!;
  console.log(
    `\n${percent(summary.before)} → ${percent(summary.after)} on the golden cases (${low} to ${high} points, 95%), ` +
      `${summary.promoted ? `${release} serves now` : phase}, ${summary.seconds.toFixed(0)} s.`,
  );
  const look = [
    ['npx pawl loop history', 'every turn: what it cost and gained'],
    [`npx pawl reports show ${turn!.state.evaluate!.report}`, 'before and after, task type by task type'],
    ...(dataset === undefined
      ? []
      : [[`npx pawl datasets show ${dataset}`, 'what was learned from, and why the rest was left out'] as const]),
    [`npx pawl releases card ${release}`, 'the model card'],
    ['npx pawl trajectories list', `the conversations; the agent answers at ${url}/v1`],
  ] as const;
  console.log('\nLook next:');
  for (const [command, what] of look) console.log(`  ${command.padEnd(52)}${what}`);
  return true;
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options });
  if (values.help) {
    console.log(help);
    return 0;
  }
  const seed = values.seed === undefined ? undefined : whole('seed', values.seed, 0);
  const conversations = whole('conversations', values.conversations, 1);
  const stop = new AbortController();
  let told = false;
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      if (told) process.exit(130);
      told = true;
      clear();
      console.log('\nStopping. The turn goes on from here at the next start.');
      stop.abort();
    });
  const server = await startServer(values.config);
  const { api, child } = server;
  child.once('exit', () => stop.abort());
  try {
    const desk: Desk = { api, key: await customersKey(api), agent };
    if (values.break) {
      console.log('\nA candidate that learned a trick.');
      const stopped = await breakIn(desk, row, stop.signal);
      console.log(
        stopped ? '\nStopped by evaluation, and taken back when it was forced past it.' : '\nIt was not stopped.',
      );
      return stopped ? 0 : 1;
    }
    const before = await readLoop(api);
    writeSummary(before);
    const { turn: last } = before;
    const isUnderWay = last !== null && last.endedAt === null;
    if (isUnderWay && seed !== undefined && seed !== last.seed)
      throw new Error(
        `Turn ${last.number} was begun with seed ${last.seed} and has not ended; leave out --seed ${seed} to go on with it.`,
      );
    if (isUnderWay)
      console.log(
        `\nTurn ${last.number} of the loop, seed ${last.seed}, going on${last.done.length > 0 ? ` after ${last.done.at(-1)}` : ''}.`,
      );
    const turn = isUnderWay ? last : await beginTurn(desk, seed, conversations, stop.signal);
    // What was done before this start was told then.
    const view = await watchTurn(desk, isUnderWay ? turn.done : [], stop.signal);
    writeSummary(view);
    const isWhole = conclude(view, api.url);
    if (values.once) return isWhole ? 0 : 1;
    console.log(`\nTraffic goes on at ${api.url}/v1 (model ${agent}). Ctrl-C stops.`);
    console.log(`The whole of it on one page: ${server.page}`);
    await keepTalking(desk, stop.signal);
    return 0;
  } catch (error) {
    if (!told) throw error;
    return 0;
  } finally {
    await server.stop();
  }
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : String(error));
    process.exit(1);
  },
);
