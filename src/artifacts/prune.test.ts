import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { withStore } from '../store/test-store.ts';
import { hashOf } from './artifact.ts';
import { findArtifact, listArtifacts } from './inventory.ts';
import { openArtifacts } from './open.ts';
import { pruneArtifacts, toPrune } from './prune.ts';

const scratch = mkdtempSync(join(tmpdir(), 'pawl-prune-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const day = 24 * 60 * 60 * 1000;

it('only what nothing refers to and is a day old goes', () => {
  const all = [
    { reference: 'used', at: 0 },
    { reference: 'old', at: 0 },
    { reference: 'young', at: 1 },
  ];
  expect(toPrune(all, (reference) => reference === 'used', day)).toEqual({ old: [all[1]], young: 1, kept: 1 });
});

it('finds every place in the database that refers to an artifact, and what those need themselves', async () => {
  const store = await withStore();
  const artifacts = openArtifacts({ home: scratch });
  const add = (name: string, needs: string[] = []) => {
    mkdirSync(join(scratch, name));
    writeFileSync(join(scratch, name, 'file'), name);
    return artifacts.add({ kind: 'model', needs }, join(scratch, name));
  };
  const [base, unused] = [await add('base'), await add('unused')];
  const adapter = await add('adapter', [base]);
  const [inSettings, inState, inReport, served, step] = [
    ...[await add('settings'), await add('state'), await add('report'), await add('served'), await add('step')],
  ];
  const now = Date.now();
  await expect(pruneArtifacts(artifacts, store, { now: now + 2 * day, dryRun: true })).rejects.toThrow(
    /Nothing in this database refers to any of the 8 artifacts/,
  );
  await store.pool.query(
    `insert into pawl.runs (id, agent, recipe, settings, base, folder, seed, steps, step, status, budget, spent, created_at, heartbeat_at)
     values ('run-1', 'desk', 'sft', jsonb_build_object('examples', $1::text), $2, '', 1, 1, 0, 'paused', '{}', '{}', now(), now())`,
    [inSettings, adapter],
  );
  await store.pool.query(
    `insert into pawl.run_checkpoints (run, folder, step, kind, stage) values ('run-1', $1, 1, 'step', 0)`,
    [step],
  );
  await store.pool.query(
    `insert into pawl.loop_turns (agent, number, seed, state, started_at)
     values ('desk', 1, 1, jsonb_build_object('train', jsonb_build_object('checkpoint', $1::text)), now())`,
    [inState],
  );
  await store.pool.query(
    `insert into pawl.reports (id, agent, baseline, candidate, suite, verdict, body, created_at)
     values ('report-1', 'desk', 'a', 'b', 'golden', 'pass', jsonb_build_object('suite', jsonb_build_object('artifact', $1::text)), now())`,
    [inReport],
  );
  await store.pool.query(
    `insert into pawl.releases (id, agent, name, upstream, model, checkpoint, sampling, created_at)
     values ('release-1', 'desk', 'v1', 'engine', 'v1', $1, '{}', now())`,
    [served],
  );
  expect(await findArtifact(artifacts, store, base)).toMatchObject({ referredBy: [adapter], bytes: 4 });
  expect((await findArtifact(artifacts, store, hashOf(served!).slice(0, 12))).referredBy).toEqual([
    'release v1 of desk',
  ]);
  const listed = await listArtifacts(artifacts, store, 100);
  expect(listed.filter(({ referredBy }) => referredBy.length === 0).map(({ reference }) => reference)).toEqual([
    unused,
  ]);

  // Files of an upload that never ended, two days ago.
  const lost = join(artifacts.where, 'f'.repeat(64));
  mkdirSync(lost);
  writeFileSync(join(lost, 'part'), 'x');
  utimesSync(join(lost, 'part'), new Date(now - 2 * day), new Date(now - 2 * day));
  expect(await pruneArtifacts(artifacts, store, { now, dryRun: false })).toMatchObject({
    kept: 7,
    young: 1,
    removed: [],
  });
  const later = { now: now + 2 * day, dryRun: true };
  expect(await pruneArtifacts(artifacts, store, later)).toMatchObject({ kept: 7, removed: [{ reference: unused }] });
  expect(await artifacts.has(unused)).toBe(true);
  await pruneArtifacts(artifacts, store, { ...later, dryRun: false });
  expect(await artifacts.has(unused)).toBe(false);
  for (const kept of [base, adapter, inSettings!, inState!, inReport!, served!, step!]) await artifacts.verify(kept);
});
