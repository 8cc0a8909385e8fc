/** A release that is an adapter for a vLLM server, from the command that makes it to users who get it and get it no more. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type PawlProcess, startPawl, until } from './pawl.ts';
import { writeTinyAdapter } from './tiny-adapter.ts';
import { startVllmStandIn, type VllmStandIn } from './vllm-stand-in.ts';

const root = mkdtempSync(join(tmpdir(), 'pawl-adapters-'));
const configFile = join(root, 'pawl.config.ts');
let vllm: VllmStandIn;
let pawl: PawlProcess;

beforeAll(async () => {
  vllm = await startVllmStandIn({ model: 'desk-base' });
  const settings = {
    agents: [
      { name: 'desk', deploy: { steps: [1], holdSeconds: 3600, promotion: { rule: 'checks' }, shadow: { share: 0 } } },
    ],
    upstreams: { vllm: { baseUrl: vllm.url, adapters: { kind: 'vllm', folder: join(root, 'seen') } } },
  };
  writeFileSync(configFile, `export default ${JSON.stringify(settings)};\n`);
  pawl = await startPawl({}, undefined, undefined, ['--config', configFile]);
});
afterAll(async () => {
  await pawl?.remove();
  await vllm?.stop();
  rmSync(root, { recursive: true, force: true });
});

const command = async (...args: string[]): Promise<string> => {
  const env = { ...process.env, DATABASE_URL: '', PAWL_HOME: pawl.home };
  const all = ['bin/pawl.js', ...args, '--config', configFile];
  return (await promisify(execFile)(process.execPath, all, { env })).stdout;
};
let asks = 0;
const ask = async () => {
  const response = await fetch(`${pawl.url}/t/t${++asks}/u/ann/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${pawl.key}`, 'content-type': 'application/json' },
    body: '{"model":"desk","messages":[{"role":"user","content":"Hi"}]}',
  });
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
  return { release: response.headers.get('x-pawl-release'), text: choices[0]!.message.content };
};
/** Returns what lets them go on. */
const holdLoads = (): (() => void) => {
  let letGo = () => {};
  const gate = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  vllm.before = () => gate;
  return letGo;
};
const answersAs = (release: string) => until(ask, (answer) => answer.release === release);

it('is given to users once the server answers with it, again after the server restarted, and unloaded after a rollback', async () => {
  await command('releases', 'create', 'v1', '--upstream', 'vllm', '--model', 'desk-base');
  await command('releases', 'serve', 'v1');
  await answersAs('v1');
  const adapter = await writeTinyAdapter(join(root, 'adapter'));
  const made = JSON.parse(
    await command('releases', 'create', 'v2', '--upstream', 'vllm', '--adapter', adapter, '--json'),
  ) as { model: string };
  // The release is a copy: what becomes of the folder is nobody's concern.
  rmSync(adapter, { recursive: true });
  expect(await command('releases', 'show', 'v2')).toMatch(/adapter +not loaded at upstream vllm/);

  let letLoad = holdLoads();
  // A check would wait for the server, too.
  const unasked = ['--unfit', 'The server is slow to load.'];
  await command('rollouts', 'start', '--candidate', 'v2', '--force', '--reason', 'to see it move', ...unasked);
  // Its weight is 1, and the server is still loading: the baseline answers, at once.
  const loading = `/v1/load_lora_adapter ${made.model}`;
  await until(ask, () => vllm.asked.includes(loading));
  expect(await ask()).toEqual({ release: 'v1', text: 'I am desk-base.' });
  letLoad();
  expect((await answersAs('v2')).text).toBe(`I am ${made.model}.`);
  expect(JSON.parse(await command('releases', 'show', 'v2', '--json'))).toMatchObject({ adapter: { state: 'loaded' } });

  letLoad = holdLoads();
  await vllm.stop();
  const { problems } = await until(
    async () => (await (await fetch(`${pawl.url}/healthz`)).json()) as { problems: string[] },
    (health) => health.problems.length > 0,
  );
  expect(problems[0]).toMatch(new RegExp(`^${made.model} is not loaded at upstream vllm: .* cannot be reached`));
  await vllm.start();
  expect(await ask()).toEqual({ release: 'v1', text: 'I am desk-base.' });
  letLoad();
  await answersAs('v2');

  const loads = () => vllm.asked.filter((one) => one.startsWith('/v1/load')).length;
  const before = loads();
  await command('rollouts', 'abort', 'v2-r1', '--reason', 'it is rude');
  await answersAs('v1');
  await until(
    () => vllm.loaded.size,
    (left) => left === 0,
  );
  expect(loads()).toBe(before);
  expect(await ask()).toEqual({ release: 'v1', text: 'I am desk-base.' });
});
