/**
 * The whole loop as a user runs it, made short: real processes, a real database, a real model that learns. Once left alone
 * and once killed with SIGKILL in the middle of each of its six stages: the two must tell the same. What is left on disk
 * afterwards is searched for the e-mail addresses and card numbers that the simulated customers wrote.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { supportDesk } from '../examples/support-desk/desk.ts';
import { readModelFiles } from '../src/engine/checkpoint.ts';
import { tokenizerFromFiles } from '../src/engine/tokenizer.ts';
import { type StageName, type Summary, stageNames } from '../src/loop/turn.ts';
import { makeTasks } from '../src/simulate/environment.ts';
import { processStart } from '../src/store/lock.ts';
import { listLoopTurns } from '../src/store/loop-turns.ts';
import { openStore, type Store } from '../src/store/postgres.ts';
import { readRelease } from '../src/store/releases.ts';
import { demoConfig, type LoopProcess, postgresOf, startLoop } from './loop-process.ts';
import { until } from './pawl.ts';

const agent = 'support-desk';
const seed = 1;
const conversations = 80;
const base = resolve('examples/support-desk/model');
const folder = mkdtempSync(join(tmpdir(), 'pawl-loop-'));
const homes = { whole: join(folder, 'whole'), killed: join(folder, 'killed') };
const config = join(folder, 'pawl.config.ts');
const running = new Set<LoopProcess>();
const stores = new Set<Store>();

const start = (home: string) => {
  const loop = startLoop(home, config, seed, conversations);
  running.add(loop);
  return loop;
};
const open = async (home: string) => {
  const store = await openStore({ home, join: true });
  stores.add(store);
  return store;
};
const summaryOf = (home: string): Summary => JSON.parse(readFileSync(join(home, 'summary.json'), 'utf8'));

let undisturbed: LoopProcess;
beforeAll(() => {
  // Enough to be clearly better than the base model, and no more.
  writeFileSync(config, demoConfig(8));
  undisturbed = start(homes.whole); // beside the one that is killed
});
afterAll(async () => {
  for (const store of stores) await store.close();
  for (const { child, ended } of running) {
    child.kill('SIGTERM');
    await ended();
  }
  // A test that failed between a kill and the next start has left its database behind; whoever opens it can stop it.
  for (const home of Object.values(homes)) await (await openStore({ home })).close();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs until `stage` is half done, says so, and does not go on by itself where the stage would be over in no time. */
const half: Record<StageName, (store: Store, loop: LoopProcess) => Promise<() => Promise<void>>> = {
  collect: (store) => reached(store, `select count(*) as n from pawl.trajectories`, 20),
  score: (store) => blocked(store, 'pawl.scores'),
  curate: (store) => blocked(store, 'pawl.datasets'),
  train: (store) => reached(store, `select count(*) as n from pawl.run_steps`, 5),
  evaluate: async (_store, loop) => {
    await loop.printed(/^ +train /m);
    await new Promise((done) => setTimeout(done, 1_000)); // playing, which leaves nothing to look at
    return async () => {};
  },
  deploy: (store) => reached(store, `select count(*) as n from pawl.audit where event = 'rollout-advanced'`, 1),
};

async function reached(store: Store, count: string, least: number) {
  await until(
    async () => (await store.pool.query<{ n: number }>(count)).rows[0]!.n,
    (n) => n >= least,
    20,
  );
  return async () => {};
}

/** Holds the table, and waits until somebody waits for it. What was sent to the database is done once it is let go. */
async function blocked(store: Store, table: string) {
  return waitedFor(store, table, await lock(store, table));
}

async function lock(store: Store, table: string) {
  const holder = await store.pool.connect();
  await holder.query(`begin; lock table ${table} in access exclusive mode`);
  return holder;
}

async function waitedFor(store: Store, table: string, holder: Awaited<ReturnType<typeof lock>>) {
  await until(
    async () =>
      (
        await store.pool.query<{ n: number }>(
          `select count(*) as n from pg_locks where not granted and relation = $1::regclass`,
          [table],
        )
      ).rows[0]!.n,
    (n) => n > 0,
    20,
  );
  return async () => {
    await holder.query('rollback');
    holder.release();
  };
}

describe('the loop', () => {
  it('ends with the same summary when it is killed in the middle of every stage', async () => {
    let store: Store | undefined;
    let database: number | undefined;
    for (const [i, stage] of stageNames.entries()) {
      // A turn that is under way goes on as soon as its server is up: curating would be over before anybody looks.
      const early = stage === 'curate' ? await lock(store!, 'pawl.datasets') : null;
      const loop = start(homes.killed);
      await loop.printed(/^Turn 1 of the loop, seed 1/m);
      store ??= await open(homes.killed);
      database ??= postgresOf(homes.killed);
      expect(postgresOf(homes.killed)).toBe(database); // taken over as it was
      const letGo = early === null ? await half[stage](store, loop) : await waitedFor(store, 'pawl.datasets', early);
      await loop.kill();
      const [turn] = await listLoopTurns(store, agent, 1);
      // Customers come before the turn that learns from them.
      if (i === 0) expect(turn).toBeUndefined();
      else expect(turn).toMatchObject({ number: 1, done: stageNames.slice(0, i), endedAt: null });
      expect(processStart(database)).not.toBeNull();
      await letGo();
    }
    const last = start(homes.killed);
    await last.printed(/going on after evaluate\./);
    expect([await last.ended(), last.output()]).toEqual([0, expect.stringContaining('support-desk-1 serves now')]);
    expect(processStart(database!)).toBeNull();

    expect([await undisturbed.ended(), undisturbed.output()]).toEqual([0, expect.stringContaining(' serves now')]);
    const [{ seconds, users, ...killed }, { seconds: _, users: others, ...whole }] = [
      summaryOf(homes.killed),
      summaryOf(homes.whole),
    ];
    expect(killed).toEqual(whole);
    // Who came while the candidate was rolled out is up to the clock; who came before is not.
    expect(users!.all.before).toEqual(others!.all.before);
    for (const { all, slices } of [users!, others!]) {
      expect(all.after!.success).toBeGreaterThan(all.after!.interval[0]);
      expect(slices.map(({ slice }) => slice)).toContain('with personal data');
    }
    expect(seconds).toBeGreaterThan(0);
    expect(whole).toMatchObject({ agent, turn: 1, seed, verdict: 'pass', promoted: true });
    expect(whole.after).toBeGreaterThan(whole.before + 0.1);
    expect(whole.ci[0]).toBeGreaterThan(0);
    expect(whole.funnel[0]).toEqual({ gate: 'origin', entered: conversations, passed: conversations });
    expect(whole.funnel.at(-1)!.passed).toBeGreaterThan(0);
  }, 900_000);

  it('starts the next turn from the model it promoted', async () => {
    const loop = start(homes.whole);
    await loop.printed(/^Turn 2 of the loop, seed 1\./m);
    await loop.printed(/^ +score /m);
    const store = await open(homes.whole);
    const [turn] = await listLoopTurns(store, agent, 1);
    const promoted = await readRelease(store, { agent, name: 'support-desk-1' });
    expect(turn).toMatchObject({
      number: 2,
      state: { baseline: { release: 'support-desk-1', checkpoint: promoted!.checkpoint } },
    });
    const { since } = turn!.state.collect!;
    const answered = await store.pool.query(`select distinct release from pawl.turns where started_at >= $1`, [
      new Date(since),
    ]);
    expect(answered.rows).toEqual([{ release: 'support-desk-1' }]);
    await store.close();
    loop.child.kill('SIGTERM');
    expect([await loop.ended(), loop.output()]).toEqual([0, expect.stringContaining('goes on from here')]);
  });
});

describe('what customers wrote about themselves', () => {
  // Those of the windows of both turns, and those who came while the candidate was rolled out, more than could have.
  const visits = [
    [seed, conversations] as const,
    ...Array.from({ length: 100 }, (_, wave) => [seed * 1000 + wave + 1, 100] as const),
  ].flatMap(([of, count]) => makeTasks(supportDesk, 'validation', count, of).map(({ data }) => data));
  const emails = new Set(visits.flatMap(({ email }) => email ?? []));
  const cards = new Set(visits.flatMap(({ card }) => card?.replaceAll(' ', '') ?? []));

  /** Addresses and card numbers of theirs in a text, whatever stands before them or between groups of digits. */
  const found = (text: string): string[] => [
    ...[...text.matchAll(/(?=([a-z]+\.u\d+@example\.com))/gi)]
      .map(([, one]) => one!.toLowerCase())
      .filter((one) => emails.has(one)),
    ...[...text.matchAll(/(?=(4\d{3}(?:[^\dA-Za-z]{0,2}\d{4}){3}))/g)]
      .map(([, one]) => one!.replace(/\D/g, ''))
      .filter((one) => cards.has(one)),
  ];
  const filesUnder = (path: string) =>
    readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));

  it('is known to this test, which finds it where it is', () => {
    expect(emails.size).toBeGreaterThan(100);
    expect(cards.size).toBeGreaterThan(100);
    const [email, card] = [[...emails][0]!, [...cards][0]!];
    const spaced = card.replace(/(\d{4})(?=\d)/g, '$1 ');
    expect(found(`x${email}, 4${card} ${spaced}-`)).toEqual([email, card, card]);
  });

  it.each(Object.keys(homes) as (keyof typeof homes)[])('is in no file of the home that was %s', (which) => {
    const files = filesUnder(homes[which]);
    expect(files.length).toBeGreaterThan(500); // the database's own among them
    expect(files.flatMap((path) => found(readFileSync(path, 'latin1')).map((one) => `${path}: ${one}`))).toEqual([]);
  });

  it.each(Object.keys(homes) as (keyof typeof homes)[])(
    'is in no row and no token of the database of the home that was %s',
    async (which) => {
      const store = await openStore({ home: homes[which] });
      stores.add(store);
      const tables = await store.pool.query<{ name: string }>(
        `select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname = 'pawl' and c.relkind = 'r'`,
      );
      let marks = 0;
      for (const { name } of tables.rows) {
        const rows = await store.pool.query<{ text: string }>(`select x::text as text from ${name} x`);
        for (const { text } of rows.rows) {
          expect(found(text)).toEqual([]);
          marks += /\[(?:EMAIL|CARD)_\w+\]/.test(text) ? 1 : 0;
        }
      }
      // They did write to the agent: what was taken out has left its mark.
      expect(marks).toBeGreaterThan(20);

      const tokenizer = tokenizerFromFiles(await readModelFiles(base))!;
      const turns = await store.pool.query<{ prompt: number[]; completion: number[] }>(
        `select prompt_token_ids as prompt, token_ids as completion from pawl.turns where prompt_token_ids is not null`,
      );
      expect(turns.rows.length).toBeGreaterThan(conversations);
      const said = turns.rows.map(({ prompt, completion }) => tokenizer.decode([...prompt, ...completion]));
      expect(said.some((text) => text.includes('You help customers of a shop.'))).toBe(true);
      expect(said.flatMap(found)).toEqual([]);
      await store.close();
    },
  );
});
