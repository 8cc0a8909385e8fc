/** `pawl train` with the user's own agent as the environment: a real process trains, the agent of the example is asked. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agent } from '../examples/own-agent-typescript/agent.ts';
import { writeCheckpoint } from '../src/engine/checkpoint.ts';
import { parseSpec } from '../src/engine/model-spec.ts';
import { newModel } from '../src/engine/new-model.ts';
import { bareEnvironment } from './bare-environment.ts';

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'pawl-practise-'));
let server: Server;
beforeAll(async () => {
  await writeCheckpoint(join(folder, 'model'), newModel(parseSpec('d16-l1-h2-kv1-v300'), { seed: 1, texts: [] }));
  writeFileSync(
    join(folder, 'pawl.config.ts'),
    `import { defineConfig } from 'pawl';
import capitals from '${at('../examples/own-agent-typescript/desk.ts')}';
export default defineConfig({
  agents: [capitals],
  engine: { threads: 1 },
});
`,
  );
  server = agent();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
});
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

function pawl(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const env = {
    ...bareEnvironment(),
    AGENT_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  };
  return new Promise((resolve) => {
    execFile(process.execPath, [at('../bin/pawl.js'), ...args], { cwd: folder, env }, (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code), out, err }),
    );
  });
}

const how = ['--recipe', 'grpo', '--steps', '1', '--tasks-per-step', '2', '--attempts', '2', '--json'];

test('a run practises with the agent and none of its calls becomes traffic', async () => {
  const { code, out } = await pawl('train', '--agent', 'capitals', '--id', 'own', ...how);
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject({ id: 'own', recipe: 'grpo', status: 'finished', step: 1 });
  const episodes = await pawl('runs', 'episodes', 'own', '--json');
  const { step, episodes: kept } = JSON.parse(episodes.out);
  expect({ step, kept }).toMatchObject({ step: 0, kept: [{ messages: expect.any(Array) }, {}] });
  expect(kept[0].task).toBe(kept[1].task);
  expect((await pawl('runs', 'episodes', 'own')).out).toMatch(/^Step 1: .+\n\nAttempt [12]: reward /);
  expect((await pawl('runs', 'episodes', 'own', '--steps')).out).toMatch(/STEP +TASK.+\n +1 /);
  expect(await pawl('runs', 'episodes', 'own', '--step', '2')).toMatchObject({
    ...{ code: 1, err: expect.stringContaining('No episode of step 2 of run own is kept') },
  });
  const listed = await pawl('trajectories', 'list', '--json');
  expect(listed).toMatchObject({ code: 0, out: '' });
});
