/** `pawl train` at a server that speaks Tinker's protocol: real processes, real HTTP, crashes of either side in the middle. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeCheckpoint } from '../src/engine/checkpoint.ts';
import { parseSpec } from '../src/engine/model-spec.ts';
import { newModel } from '../src/engine/new-model.ts';
import { type StandIn, startStandIn } from '../src/engine/tinker/fixtures/stand-in.ts';
import { openStore, type Store } from '../src/store/postgres.ts';
import { bareEnvironment } from './bare-environment.ts';

const bin = fileURLToPath(new URL('../bin/pawl.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'pawl-remote-'));
const home = join(folder, '.pawl');
const model = join(folder, 'model');
let server: StandIn;
let store: Store;

beforeAll(async () => {
  await writeCheckpoint(model, newModel(parseSpec('d16-l1-h2-kv1-v300-c256'), { seed: 1, texts: [] }));
  server = await startStandIn({ folder: model, dialect: 'skyrl', baseModel: '/models/desk' });
  const examples = Array.from({ length: 48 }, (_, i) => ({
    messages: [
      { role: 'user', content: `Where is order ${i}?` },
      { role: 'assistant', content: `Order ${i} was sent.` },
    ],
    quality: 1,
    taskType: 'status',
  }));
  writeFileSync(join(folder, 'examples.jsonl'), examples.map((one) => `${JSON.stringify(one)}\n`).join(''));
  writeFileSync(
    join(folder, 'pawl.config.ts'),
    `import { defineAgent, defineConfig } from 'pawl';
export default defineConfig({
  agents: [defineAgent({ name: 'desk', train: { base: 'model', recipe: 'sft' } })],
  engine: { kind: 'tinker', url: '${server.url}', baseModel: '/models/desk', folder: 'model', patienceSeconds: 20 },
});
`,
  );
  store = await openStore({ home }); // one database for all that follows
});
afterAll(async () => {
  await store.close();
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

function start(...args: string[]): { child: ChildProcess; ended: Promise<{ code: number | null; text: string }> } {
  const child = spawn(process.execPath, [bin, ...args], {
    cwd: folder,
    env: { ...bareEnvironment(), TINKER_API_KEY: 'tml-very-secret' },
  });
  let text = '';
  for (const stream of [child.stdout!, child.stderr!]) stream.setEncoding('utf8').on('data', (some) => (text += some));
  return { child, ended: once(child, 'close').then(([code]) => ({ code: code as number | null, text })) };
}
const train = (id: string, ...more: string[]) =>
  start('train', '--examples', 'examples.jsonl', '--lora', '4', '--learning-rate', '0.01', '--id', id, ...more);
const curveOf = (id: string): string => join(home, 'runs', id, 'metrics.jsonl');
const losses = (id: string): number[] =>
  readFileSync(curveOf(id), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).loss);
/** The run's own steps: how quick the server is was tried before it began. */
const reachStep = async (id: string, count: number) => {
  const steps = () => (existsSync(curveOf(id)) ? readFileSync(curveOf(id), 'utf8').split('\n').length - 1 : 0);
  for (let n = 0; steps() < count && n < 20_000; n++) await new Promise((go) => setTimeout(go, 5));
};

test('a run learns at the server, and its adapter comes home', async () => {
  const { code, text } = await train('calm').ended;
  expect(text).toContain('Run calm is finished');
  expect(code).toBe(0);
  expect(losses('calm')).toHaveLength(6);
  expect(losses('calm').at(-1)).toBeLessThan(losses('calm')[0]!);
  expect(existsSync(join(home, 'models', 'calm', 'adapter_model.safetensors'))).toBe(true);
  // An address that the server named is fetched from without the key: it may be anybody's.
  for (const { path, headers } of server.asked)
    expect(headers['x-api-key']).toBe(path.endsWith('/download') ? undefined : 'tml-very-secret');
  expect(text).not.toContain('tml-very-secret');
  expect(server.loaded).toBe(0);
});

test('of each step it is said where its time went', async () => {
  const { text } = await start('runs', 'show', 'calm').ended;
  expect(text).toMatch(/time +sampling \d+% +environment \d+% +training \d+% +waiting \d+% +Pawl \d+%/);
  expect(text).toMatch(/STEP +SECONDS +SAMPLING +ENVIRONMENT +TRAINING +WAITING +PAWL/);
  const { time } = JSON.parse((await start('runs', 'show', 'calm', '--json').ended).text);
  expect(time.steps).toBe(6);
  expect(time.training).toBeGreaterThan(0);
  expect(time.pawl).toBeGreaterThan(0);
  expect(time.sampling).toBe(0); // it learned from examples
});

test('playing ahead is refused by recipes that do not play, and at a server that samples where it trains', async () => {
  const sft = await train('behind', '--lag', '1').ended;
  expect(sft.code).toBe(1);
  expect(sft.text).toContain('lag is for the recipes grpo, sft-grpo, rft-grpo; sft does not read it.');
  const desk = `${fileURLToPath(new URL('../examples/support-desk/desk.ts', import.meta.url))}#supportDesk`;
  const grpo = await start('train', '--recipe', 'grpo', '--environment', desk, '--lora', '4', '--lag', '1').ended;
  expect(grpo.code).toBe(1);
  expect(grpo.text).toContain('this server samples in the place that trains');
});

test('a server that is started again in the middle changes nothing but the time', async () => {
  const { ended } = train('shaken');
  await Promise.race([reachStep('shaken', 3), ended]); // a run that fails before must not keep us waiting
  await server.restart('all');
  const { code, text } = await ended;
  expect(text).toContain('Run shaken is finished');
  expect(code).toBe(0);
  expect(losses('shaken')).toEqual(losses('calm'));
});

test('a run whose process was killed goes on from its newest checkpoint', async () => {
  const { child, ended } = train('killed');
  await Promise.race([reachStep('killed', 3), ended]); // a run that fails before must not keep us waiting
  child.kill('SIGKILL');
  await ended;
  const { code, text } = await start('runs', 'resume', 'killed').ended;
  expect(text).toContain('Run killed is finished');
  expect(code).toBe(0);
  expect(losses('killed')).toEqual(losses('calm'));
});
