/**
 * A gateway, two workers and an API, processes that share a database and an S3 server and no disk, while workers and API are killed -9: each
 * turn of the loop makes its dataset once, and what lies on S3 is whole. Needs versitygw (s3-server.ts); `KILLS` of them.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { createRelease, serveRelease } from '../src/deploy/reconcile.ts';
import type { Role } from '../src/roles/ground.ts';
import { random } from '../src/simulate/random.ts';
import { listDatasets } from '../src/store/datasets.ts';
import { openStore, type Store } from '../src/store/postgres.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';
import { s3Missing, startS3 } from './s3-server.ts';
import { startUpstream } from './upstream.ts';

const kills = Number(process.env.KILLS ?? 8);
const adminToken = 'pawl_admin_for_all_parts_of_this_installation';

describe.skipIf(s3Missing !== null)(`roles on S3${s3Missing === null ? '' : ` (left out: ${s3Missing})`}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-roles-s3-'));
  const closers: (() => Promise<void> | void)[] = [() => rmSync(folder, { recursive: true, force: true })];
  afterAll(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  }, 600_000);

  it('make each dataset once and whole, whoever is killed', async () => {
    const config = join(folder, 'pawl.config.ts');
    writeFileSync(
      config,
      `import { defineAgent, defineConfig, feedback, weighted } from 'pawl';
export default defineConfig({
  agents: [defineAgent({
    name: 'desk', reward: weighted({ votes: [1, feedback()] }), curate: { maxUserShare: 1, kAnonymity: 1 },
    train: { base: '/nowhere' }, evaluate: { golden: '/nowhere.jsonl' }, loop: { every: null, after: null },
  })],
});
`,
    );
    const s3 = await startS3(folder);
    closers.push(() => s3.stop());
    const upstream = await startUpstream();
    closers.push(() => upstream.close());
    const database = await openStore({ home: join(folder, 'database'), volatile: true });
    closers.push(() => database.close());
    const env = {
      ...{ DATABASE_URL: database.url, PAWL_UPSTREAM: upstream.url, PAWL_ADMIN_TOKEN: adminToken },
      ...{ ...s3.env, PAWL_ARTIFACTS: `s3://${s3.bucket}/pawl`, AWS_ENDPOINT_URL_S3: s3.endpoint },
    };
    const begin = async (role: Role, name: string) => {
      const known = { key: '', adminToken };
      const started = await startPawl(env, join(folder, name), known, ['--config', config], [], role);
      const part = { name, now: started };
      closers.push(() => part.now.kill('SIGKILL'));
      return part;
    };
    const gateway = await begin('gateway', 'gateway');
    const api = await begin('api', 'api');
    const parts = [api, await begin('worker', 'worker-1'), await begin('worker', 'worker-2')];
    const base = { agent: 'desk', name: 'desk-0', upstream: 'default', model: 'echo' };
    await serveRelease(database, await createRelease(database, base, 'ann', Date.now()), 'ann', Date.now());

    const dice = random(11, 'kills');
    for (let n = 1; n <= kills; n++) {
      await talk(gateway.now, api.now, n);
      await recorded(database, 3 * n);
      expect(await post(api.now, '/api/loop/run', { agent: 'desk' })).toBeLessThan(300);
      await sleep(dice.integer(0, 1500));
      const one = dice.pick(parts);
      await one.now.kill('SIGKILL');
      one.now = await one.now.restart();
      await until(
        () => turnsOf(database),
        (turns) => turns.length === n && turns.every(({ ended }) => ended),
        250,
      );
    }

    const turns = await turnsOf(database);
    expect(turns.map(({ done }) => done)).toEqual(Array(kills).fill(['collect', 'score', 'curate']));
    const datasets = await listDatasets(database, { agent: 'desk', limit: 1000 });
    expect(datasets.map(({ version }) => version).toSorted((a, b) => a - b)).toEqual(turns.map((_, i) => i + 1));
    const command = { env: { ...process.env, ...env, PAWL_HOME: join(folder, 'reader') } };
    const verify = ['bin/pawl.js', 'artifacts', 'verify', '--config', config];
    const { stdout } = await promisify(execFile)(process.execPath, verify, command);
    expect(stdout).toMatch(new RegExp(`^${kills} of ${kills} artifacts are as they were`, 'm'));
  }, 3_600_000);
});

const post = async (to: PawlProcess, path: string, body: object, key = adminToken): Promise<number> => {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  return (await fetch(`${to.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })).status;
};

/** Three people agree, ask, and are content. */
async function talk(gateway: PawlProcess, api: PawlProcess, round: number): Promise<void> {
  for (const user of ['ann', 'bob', 'cleo']) {
    const id = `${user}-${round}`;
    const headers = { authorization: `Bearer ${adminToken}` };
    await fetch(`${api.url}/api/consent/${user}?agent=desk`, { method: 'PUT', headers });
    const asked = { model: 'echo', messages: [{ role: 'user', content: `Where is the parcel of ${id}?` }] };
    expect(await post(gateway, `/t/${id}/u/${user}/v1/chat/completions`, asked, gateway.key)).toBe(200);
    expect(await post(gateway, `/t/${id}/v1/feedback`, { vote: 'up', user }, gateway.key)).toBe(202);
  }
}

const recorded = ({ pool }: Store, count: number) =>
  until(
    async () => (await pool.query(`select 1 from pawl.signals where kind = 'feedback'`)).rowCount,
    (found) => found === count,
  );

const turnsOf = async ({ pool }: Store): Promise<{ done: string[]; ended: boolean }[]> =>
  (
    await pool.query(
      `select done, ended_at is not null as ended from pawl.loop_turns where agent = 'desk' order by number`,
    )
  ).rows;
