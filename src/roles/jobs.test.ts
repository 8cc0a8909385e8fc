import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, expect, it } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { parseConfig } from '../config.ts';
import { converse } from '../score/fixtures.ts';
import { keptFrom } from '../store/figures.ts';
import { writeEntries } from '../store/record.ts';
import { withStore } from '../store/test-store.ts';
import { jobs } from './jobs.ts';

const home = mkdtempSync(join(tmpdir(), 'pawl-jobs-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

it('what pages would wait for is counted by the hour once there is much, and not before', async () => {
  const store = await withStore();
  const turns = converse('Where is it?', [{ say: 'Here.' }], { trajectory: 'c1' });
  await writeEntries(
    store,
    turns.map((turn) => ({ kind: 'turn', turn })),
  );
  const config = parseConfig({ agents: [{ name: 'desk' }, { name: 'shop' }] }, {}, home);
  const parts = { store, config, artifacts: openArtifacts({ home }), log: pino({ level: 'silent' }) };
  const work = async () => {
    await jobs.find(({ name }) => name === 'figures')!.run({ ...parts, signal: new AbortController().signal });
    const { rows } = await store.pool.query<{ of: string }>(
      `select concat_ws(' ', nullif(agent, ''), name) as of from pawl.figures order by 1`,
    );
    return rows.map(({ of }) => of);
  };
  expect(await work()).toEqual([]);
  await store.pool.query(
    `update pg_class set reltuples = $1 where oid = (select min(inhrelid) from pg_inherits where inhparent = 'pawl.trajectories'::regclass)`,
    [keptFrom],
  );
  const each = ['evidence', 'reward versions', 'shifts', 'weeks of parts'];
  expect(await work()).toEqual([...each.map((of) => `desk ${of}`), ...each.map((of) => `shop ${of}`), 'verdicts']);
});
