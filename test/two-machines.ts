/**
 * Two machines that share a database and a place for artifacts, and no disk: what one writes the other works with, through
 * the doors that users have. In folders of their own, with settings of their own, as commands and servers of their own.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { writeModel } from '../src/engine/fixtures/write-model.ts';
import { converse } from '../src/score/fixtures.ts';
import { giveConsent } from '../src/store/consents.ts';
import { entry } from '../src/store/fixtures.ts';
import type { Store } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { bareEnvironment } from './bare-environment.ts';
import { startPawl } from './pawl.ts';

const bin = fileURLToPath(new URL('../bin/pawl.js', import.meta.url));

type Machine = { readonly folder: string; readonly env: Record<string, string> };

const machineIn = (folder: string, url: string, artifacts: string, more: Record<string, string>): Machine => {
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, 'pawl.config.ts'),
    `import { defineAgent, defineConfig, feedback, weighted } from 'pawl';
export default defineConfig({
  agents: [defineAgent({ name: 'desk', reward: weighted({ votes: [1, feedback()] }), curate: { maxUserShare: 1, kAnonymity: 1 }, train: { without: ['points', 'private', 'types', 'balance'] } })],
  engine: { threads: 1 },
});
`,
  );
  const home = join(folder, '.pawl');
  return {
    folder,
    env: {
      ...bareEnvironment(),
      DATABASE_URL: url,
      PAWL_HOME: home,
      PAWL_ARTIFACTS: artifacts,
      PAWL_PORT: '0',
      ...more,
    },
  };
};

function pawl({ folder, env }: Machine, ...args: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [bin, ...args], { cwd: folder, env }, (error, out, err) =>
      error === null ? resolve(out) : reject(new Error(`pawl ${args.join(' ')}: ${err}${out}`)),
    );
  });
}
const json = async (on: Machine, ...args: string[]) => JSON.parse(await pawl(on, ...args, '--json'));

/** Ten conversations with votes, in the last minutes. */
async function recordTraffic(store: Store): Promise<void> {
  const at = Date.now() - 600_000;
  for (const user of ['ann', 'bob']) await giveConsent(store, 'desk', user, new Date(at - 1000));
  for (let k = 0; k < 10; k++) {
    const [id, user] = [`talk-${k}`, k % 2 === 0 ? 'ann' : 'bob'];
    const about = { trajectory: id, user, startedAt: at + k * 1000 };
    const turns = converse(`Where is order ${k}?`, [{ say: `Order ${k} was sent.` }], about);
    const vote = { identity: `vote ${id}`, user, value: 1, at: at + 60_000, receivedAt: at + 60_000 };
    await writeEntries(store, [
      ...turns.map((turn) => ({ kind: 'turn' as const, turn })),
      entry.signal({ ...vote, target: { kind: 'trajectory', id } }),
    ]);
  }
}

/** What one machine curates another trains on; what that one trains a third serves, when the others are gone. */
export async function workOnThree(
  scratch: string,
  store: Store,
  artifacts: string,
  more: Record<string, string> = {},
): Promise<void> {
  const on = (name: string) => machineIn(join(scratch, name), store.url, artifacts, more);
  const leave = ({ folder }: Machine) => rmSync(folder, { recursive: true, force: true });
  await recordTraffic(store);

  const a = on('a');
  await writeModel(join(a.folder, 'model'), 'd16-l1-h2-kv1-v300');
  const first = await json(a, 'releases', 'create', 'desk-0', '--agent', 'desk', '--checkpoint', 'model');
  expect(first.checkpoint).toMatch(/^artifact:/);
  await pawl(a, 'releases', 'serve', 'desk-0', '--agent', 'desk');
  const dataset = await json(a, 'curate', 'run', '--agent', 'desk');
  expect(dataset).toMatchObject({ id: 'desk-v1', rows: 10, artifact: expect.stringMatching(/^artifact:/) });
  leave(a);

  const b = on('b');
  const learned = ['--dataset', 'desk-v1', '--recipe', 'sft', '--lora', '2', '--id', 'run-1'];
  const run = await json(b, 'train', '--agent', 'desk', ...learned);
  expect(run).toMatchObject({ status: 'finished', base: first.checkpoint });
  await pawl(b, 'releases', 'create', 'desk-1', '--agent', 'desk', '--checkpoint', run.artifact, '--run', 'run-1');
  await pawl(b, 'releases', 'serve', 'desk-1', '--agent', 'desk');
  leave(b);

  const c = on('c');
  const serving = await startPawl({ ...c.env, PAWL_UPSTREAM: '' }, join(c.folder, '.pawl'), undefined, [
    ...['--config', join(c.folder, 'pawl.config.ts')],
  ]);
  try {
    const answer = await fetch(`${serving.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${serving.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'desk', messages: [{ role: 'user', content: 'Where is it?' }], max_tokens: 4 }),
    });
    expect(answer.headers.get('x-pawl-release') ?? 'desk-1').toBe('desk-1');
    expect(answer.status, await answer.text()).toBe(200);
    const listed = await fetch(`${serving.url}/api/artifacts`, {
      headers: { authorization: `Bearer ${serving.adminToken}` },
    });
    const { artifacts: all } = (await listed.json()) as { artifacts: { kind: string; referredBy: string[] }[] };
    expect(new Set(all.map(({ kind }) => kind))).toEqual(new Set(['model', 'dataset', 'checkpoint']));
    expect(all.every(({ referredBy }) => referredBy.length > 0)).toBe(true);
  } finally {
    await serving.remove();
  }
  expect(await pawl(c, 'artifacts', 'verify')).toMatch(/(\d+) of \1 artifacts are as they were/);
}
