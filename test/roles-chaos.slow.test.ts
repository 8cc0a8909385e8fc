/**
 * Two gateways, two workers and one API, each a process of its own, on one Postgres, under load; any of them is killed -9 at
 * random, fifty times. Then every id is accounted for (test/chaos/account.ts), and what was done is looked through: loop
 * turns, scores, moves of rollouts and who made them, what became of consents withdrawn and keys revoked meanwhile.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import { verifyAudit } from '../src/deploy/audit.ts';
import { createRelease, serveRelease, startRollout } from '../src/deploy/reconcile.ts';
import { isOpen } from '../src/deploy/rollout.ts';
import { random } from '../src/simulate/random.ts';
import { readAudit } from '../src/store/audit.ts';
import { openStore, type Store } from '../src/store/postgres.ts';
import { listRollouts } from '../src/store/rollouts.ts';
import { readTrajectory } from '../src/store/trajectories.ts';
import { type Account, account, total } from './chaos/account.ts';
import { readEvidence } from './chaos/evidence.ts';
import { type ChaosGateway, startGateway } from './chaos/gateway.ts';
import { type Ledger, newLedger, now } from './chaos/ledger.ts';
import { type Load, startLoad } from './chaos/load.ts';
import { failures } from './chaos/print.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';
import { freePort } from './server-process.ts';
import { startUpstream } from './upstream.ts';

const kills = 50;
const rate = Number(process.env.RATE ?? 30);
const seed = Number(process.env.SEED ?? 11);
const agent = 'chaos';
const adminToken = 'pawl_admin_for_all_parts_of_this_installation';
const folder = mkdtempSync(join(tmpdir(), 'pawl-roles-chaos-'));
const closers: (() => Promise<void> | void)[] = [() => rmSync(folder, { recursive: true, force: true })];
afterAll(async () => {
  for (const close of closers.splice(0).reverse()) await close();
}, 600_000);

const config = join(folder, 'pawl.config.ts');
const clock = join(folder, 'clock');

type Killed = {
  readonly name: string;
  kill(): Promise<void> /** Resolves when it is there again. */;
  begin(): Promise<void>;
};

async function gatewayWith(name: string, database: Store, key: string | null) {
  const ledger = newLedger();
  const gateway = await startGateway({
    ...{ ledger, config, clock, databaseUrl: database.url, command: 'gateway', port: await freePort() },
    ...{ home: join(folder, name), log: join(folder, `${name}.log`) },
  });
  closers.push(() => gateway.close());
  const load = startLoad({
    ...{ ledger, origin: gateway.origin, key: key ?? gateway.key, rate: rate / 2, prefix: name },
    random: random(seed, 'load', name),
  });
  load.mix = { echo: 90, tools: 5, reasoner: 5 };
  closers.push(() => load.close());
  const killed: Killed = {
    name,
    async kill() {
      ledger.broken.push({
        ...{ fault: 'killed', detail: name, from: now(), to: null },
        excuses: ['away'],
        destroyed: [],
      });
      await gateway.kill();
    },
    async begin() {
      gateway.begin();
      await gateway.up();
      for (const broken of ledger.broken) broken.to ??= now();
    },
  };
  return { name, ledger, gateway, load, killed };
}

/** A worker or the API: which process it is now, and how it is killed. */
async function part(role: 'worker' | 'api', name: string, database: Store) {
  const env = { DATABASE_URL: database.url };
  const known = { key: '', adminToken };
  let running = await startPawl(env, join(folder, name), known, ['--config', config], [], role);
  closers.push(() => running.kill('SIGKILL'));
  const killed: Killed = {
    name,
    kill: () => running.kill('SIGKILL'),
    async begin() {
      running = await running.restart();
    },
  };
  return { killed, current: () => running };
}

it('accounts for every id, stage, move and word of a person after fifty kills', async () => {
  const upstream = await startUpstream();
  closers.push(() => upstream.close());
  const settings = {
    agents: [
      {
        ...{ name: agent, train: { base: '/nowhere' }, evaluate: { golden: '/nowhere.jsonl' } },
        loop: { every: null, after: { scored: 15 } },
      },
    ],
    upstreams: { stand: { baseUrl: upstream.url } },
    adminToken,
  };
  writeFileSync(config, `export default ${JSON.stringify(settings)};\n`);
  const database = await openStore({ home: join(folder, 'database'), volatile: true });
  closers.push(() => database.close());
  const first = await gatewayWith('east', database, null);
  const gateways = [first, await gatewayWith('west', database, first.gateway.key)];
  const api = await part('api', 'api', database);
  const parts = [await part('worker', 'worker-a', database), await part('worker', 'worker-b', database), api];
  const base = { agent, name: 'v0', upstream: 'stand', model: 'echo' };
  await serveRelease(database, await createRelease(database, base, 'ann', Date.now()), 'ann', Date.now());

  const over = new AbortController();
  const people = [
    approving(database, api.current, over.signal),
    saying(api.current, gateways, over.signal),
    turning(api.current, over.signal),
  ] as const;
  const dice = random(seed, 'kills');
  const all: Killed[] = [...gateways.map(({ killed }) => killed), ...parts.map(({ killed }) => killed)];
  const coming = new Map<string, Promise<void>>();
  const count: Record<string, number> = {};
  for (let n = 0; n < kills; n++) {
    await sleep(dice.integer(200, 2_500));
    const one = dice.pick(all);
    await coming.get(one.name);
    await one.kill();
    count[one.name] = (count[one.name] ?? 0) + 1;
    coming.set(one.name, sleep(dice.integer(0, 500)).then(one.begin));
  }
  await Promise.all(coming.values());
  await sleep(5_000);
  over.abort();
  const [rollouts, said] = await Promise.all(people);
  for (const { load } of gateways) await load.close();
  for (const { gateway } of gateways) expect(await gateway.drained(180_000)).toBe(true);

  const evidence = await readEvidence(database);
  const result = total(gateways.map(({ ledger }) => account(ledger, evidence, 10_000)));
  const turns = await turnsOf(database);
  const moves = await movesOf(database);
  console.log(
    JSON.stringify({
      ...{ kills, by: count, acknowledged: result.acknowledged, laid_to_kills: result.killed },
      ...{ lost_acknowledged: result.lostAcknowledged.length, doubled: result.doubled.length },
      ...{ uncounted: result.uncounted.length, own_5xx: result.own5xx.length, turns: turns.length, rollouts },
      ...{ failures: turns.reduce((sum, { failures: n }) => sum + n, 0) },
      ...{ moves: moves.length, leaders: new Set(moves.map(({ leader }) => leader.process)).size },
      ...{ consents: said.consents.length, keys: said.keys.length, slowest_revocation_ms: Math.max(...said.keys) },
    }),
  );
  expect(wrongIn(result, gateways)).toEqual([]);
  await turnsAreWhole(database, turns);
  movesAreInOrder(moves);
  expect((await verifyAudit(database)).problem).toBeNull();
  // What was said after a withdrawal had been acknowledged is nobody's to learn from, whichever gateway heard it. Like any
  // answer it may be lost to a kill in the next moment, and no more of them than there were kills.
  const heard = await Promise.all(said.consents.map((id) => readTrajectory(database, id)));
  const recorded = heard.flatMap((found) => (found === null ? [] : [found.trajectory.consent]));
  expect(new Set(recorded)).toEqual(new Set(['withdrawn']));
  expect(heard.length - recorded.length).toBeLessThanOrEqual((count.east ?? 0) + (count.west ?? 0));
  expect(said.keys.length).toBeGreaterThan(0);
  expect(Math.max(...said.keys)).toBeLessThan(2_000);
}, 7_200_000);

function wrongIn(result: Account, gateways: readonly { readonly ledger: Ledger }[]): string[] {
  const findings = gateways.flatMap(({ ledger }) => ledger.findings);
  return failures({ account: result, faults: kills, byFault: new Map(), findings, lives: {} }, 0);
}

/** A person who lets every rollout go on as soon as it stops to ask, through whichever API is there, and begins the next. */
async function approving(database: Store, api: () => PawlProcess, over: AbortSignal): Promise<number> {
  let begun = 0;
  for (; !over.aborted; await sleep(200)) {
    const [open] = await listRollouts(database, { agent, open: true });
    if (open === undefined) {
      const about = { agent, name: `v${++begun}`, upstream: 'stand', model: 'echo' };
      const candidate = await createRelease(database, about, 'ann', Date.now());
      // Nobody's traffic is on it, so no step finds an answer, and without patience each asks.
      const settings = {
        steps: [0.2, 0.4, 0.6, 0.8, 1],
        holdSeconds: 0,
        patienceSeconds: 0,
        promotion: { rule: 'checks' as const },
        shadow: { share: 0 },
      };
      const start = { id: `r${begun}`, agent, candidate, report: null, forced: 'a test', settings, actor: 'ann' };
      await startRollout(database, start, Date.now());
    } else if (isOpen(open) && open.phase === 'paused')
      await ask(api, 'POST', `/api/rollouts/${open.id}/approve`, { by: 'ann', reason: 'go on' });
  }
  return begun;
}

/** A person who wants turns of the loop, one after the other, besides those that begin by themselves. */
async function turning(api: () => PawlProcess, over: AbortSignal): Promise<void> {
  for (; !over.aborted; await sleep(3_000)) await ask(api, 'POST', '/api/loop/run', { agent });
}

/** A call of the API that may be away at the moment: 0. */
async function ask(api: () => PawlProcess, method: string, path: string, body?: object) {
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' };
  try {
    const response = await fetch(`${api().url}${path}`, {
      ...{ method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) },
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : JSON.parse(text) };
  } catch {
    return { status: 0, body: null };
  }
}

type Heard = { readonly gateway: ChaosGateway; readonly name: string; readonly load: Load };

/** Users who withdraw and keys that are revoked through the API; what the gateways make of it, each as soon as it is there. */
async function saying(api: () => PawlProcess, gateways: readonly Heard[], over: AbortSignal) {
  const consents: string[] = [];
  const keys: number[] = [];
  const persist = (method: string, path: string, body?: object) =>
    until(
      () => ask(api, method, path, body),
      ({ status }) => (status >= 200 && status < 300) || over.aborted,
    );
  const call = async ({ gateway }: Heard, path: string, key: string): Promise<number> => {
    try {
      const response = await fetch(`${gateway.origin}${path}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'Hello.' }] }),
      });
      await response.arrayBuffer();
      return response.status;
    } catch {
      return 0;
    }
  };
  const key = gateways[0]!.gateway.key;
  for (let n = 0; !over.aborted; n++, await sleep(500)) {
    const user = `person-${n}`;
    await persist('PUT', `/api/consent/${user}?agent=${agent}`);
    if ((await persist('DELETE', `/api/consent/${user}?agent=${agent}`)).status !== 200) continue;
    for (const one of gateways) {
      const id = `said-${one.name}-${n}`;
      if ((await call(one, `/t/${id}/u/${user}`, key)) === 200) consents.push(id);
    }
    const made = await persist('POST', '/api/keys', { agent, name: `brief ${n}` });
    if (made.status !== 201) continue;
    const { token, key: brief } = made.body as { token: string; key: { id: string } };
    const pids = gateways.map(({ gateway }) => gateway.pid);
    for (const one of gateways)
      await until(
        () => call(one, `/t/key-${one.name}-${n}`, token),
        (status) => status === 200 || over.aborted,
      );
    if (![202, 204].includes((await persist('DELETE', `/api/keys/${brief.id}`)).status)) continue;
    const revoked = Date.now();
    for (const [i, one] of gateways.entries()) {
      const status = await until(
        () => call(one, `/t/key-${one.name}-${n}`, token),
        (answer) => answer === 401 || over.aborted,
      );
      // One that was away in between heard of it when it was back; how long that took is not the revocation's doing.
      if (status === 401 && one.gateway.pid === pids[i]) keys.push(Date.now() - revoked);
    }
  }
  return { consents, keys };
}

type TurnRow = { number: number; done: string[]; ended: boolean; until: number | null; failures: number };

const turnsOf = async ({ pool }: Store): Promise<TurnRow[]> =>
  (
    await pool.query<TurnRow>(
      `select number, done, ended_at is not null as ended, (state->'collect'->>'until')::float8 as until,
         coalesce(jsonb_array_length(state->'failures'), 0) as failures from pawl.loop_turns where agent = $1 order by number`,
      [agent],
    )
  ).rows;

/** Numbers without a gap, each stage once and in order, one turn's traffic after the other's; one score for each conversation. */
async function turnsAreWhole({ pool }: Store, turns: readonly TurnRow[]): Promise<void> {
  expect(turns.length).toBeGreaterThan(0);
  expect(turns.map(({ number }) => number)).toEqual(turns.map((_, i) => i + 1));
  for (const { ended, done } of turns.slice(0, -1)) {
    expect(ended).toBe(true);
    expect(done).toEqual(['collect', 'score', 'curate']);
  }
  const ends = turns.flatMap(({ until: end }) => (end === null ? [] : [end]));
  expect(ends).toEqual([...new Set(ends)].toSorted((a, b) => a - b));
  const twice = await pool.query(
    `select trajectory from pawl.scores where agent = $1 group by trajectory, spec having count(*) > 1`,
    [agent],
  );
  expect(twice.rows).toEqual([]);
}

type MoveRow = { readonly rollout: string; readonly leader: { readonly process: string; readonly term: number } };

const movesOf = async (database: Store): Promise<MoveRow[]> =>
  (await readAudit(database, { agent, actor: 'pawl', oldestFirst: true, limit: 100_000 }))
    .filter(({ event }) => event.startsWith('rollout-'))
    .map(({ subject, details }) => ({ rollout: subject, leader: JSON.parse(details).leader }));

/** In the order of the log, terms only grow, and a term is one process: two never moved rollouts in turns. */
function movesAreInOrder(moves: readonly MoveRow[]): void {
  expect(moves.length).toBeGreaterThan(0);
  const byTerm = new Map<number, string>();
  let last = 0;
  for (const { leader } of moves) {
    expect(leader.term).toBeGreaterThanOrEqual(last);
    last = leader.term;
    expect(byTerm.get(last) ?? leader.process).toBe(leader.process);
    byTerm.set(last, leader.process);
  }
}
