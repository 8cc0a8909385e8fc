/**
 * The first release of an agent whose file names a model: where the file says what the model must be able to do, nobody gets it before it
 * was asked, by Pawl's own engine, through the gateway. A Pawl that runs, with three agents.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeModel } from '../src/engine/fixtures/write-model.ts';
import { readAudit } from '../src/store/audit.ts';
import type { Store } from '../src/store/postgres.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-first-release-'));
const home = join(folder, 'home');
const settings = join(folder, 'pawl.config.mjs');
let pawl: PawlProcess;
let store: Store;

beforeAll(async () => {
  const train = { base: join(folder, 'base') };
  const agents = [
    { name: 'desk', train, evaluate: { compatibility: { contextTokens: 4000 } } },
    { name: 'shop', train, evaluate: { compatibility: { load: 2 } } },
    { name: 'plain', train },
  ];
  writeFileSync(settings, `export default ${JSON.stringify({ agents })};`);
  await writeModel(train.base, 'd16-l2-h2-kv1-v280-f24-c128');
  pawl = await startPawl({}, home, undefined, ['--config', settings]);
  store = await pawl.store();
});
afterAll(async () => {
  await store?.close();
  await pawl?.remove();
  rmSync(folder, { recursive: true, force: true });
});

const api = async (path: string, given?: object) => {
  const headers = { authorization: `Bearer ${pawl.adminToken}`, 'content-type': 'application/json' };
  const more = given === undefined ? {} : { method: 'POST', body: JSON.stringify(given) };
  const response = await fetch(`${pawl.url}/api${path}`, { headers, ...more });
  // biome-ignore lint/suspicious/noExplicitAny: the bodies of several routes
  return (await response.json()) as any;
};
/** One token, as the first key's agent, the desk, or as another. */
const say = async (model: string, key = pawl.key) => {
  const response = await fetch(`${pawl.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 1 }),
  });
  const { error } = (await response.json()) as { error?: { code: string; message: string } };
  return {
    status: response.status,
    code: error?.code,
    message: error?.message,
    by: response.headers.get('x-pawl-release'),
  };
};
const told = async (agent: string, event: string) =>
  (await readAudit(store, { agent, event, oldestFirst: true })).map(({ details }) => JSON.parse(details));
const health = async () =>
  (await (await fetch(`${pawl.url}/healthz`)).json()) as { status: string; problems: string[] };
const isRefused = ({ code }: { readonly code?: string | undefined }) => code === 'release_unfit';

it('serves at once where nothing says what is needed', async () => {
  expect(await told('plain', 'release-served')).toMatchObject([
    { name: 'plain-0', reason: expect.stringMatching(/train\.base.*It was asked for nothing\.$/) },
  ]);
  expect(await told('plain', 'compatibility-checked')).toEqual([]);
});

it('is asked where the settings say it, and serves when it fits', async () => {
  const key = (await api('/keys', { name: 'shop', agent: 'shop' })).token;
  const answered = await until(
    () => say('shop', key),
    ({ status }) => status === 200,
  );
  expect(answered.by).toBe('shop-0');
  expect(await told('shop', 'compatibility-checked')).toMatchObject([{ server: 'engine', verdict: 'pass' }]);
  expect(await told('shop', 'release-served')).toMatchObject([
    { reason: expect.stringMatching(/It was asked first, and fits engine: several turns, 2 requests at a time\.$/) },
  ]);
});

const lacks =
  /^Release desk-0 gets no user: it does not fit engine\. context: A context of 4000 tokens is needed, .* `pawl releases serve desk-0 --agent desk --unfit "why"` lets it serve all the same; the next start asks again\.$/;

it('gets no user where it does not fit, and every place says why and what to do', async () => {
  const refused = await until(() => say('desk'), isRefused);
  expect(refused).toMatchObject({ status: 503, message: expect.stringMatching(lacks) });
  // The engine has it loaded, under its own name.
  expect(await say('desk-0')).toMatchObject({ status: 503, code: 'release_unfit' });
  expect(await told('desk', 'release-served')).toEqual([]);
  expect(await health()).toMatchObject({ status: 'degraded', problems: [expect.stringMatching(lacks)] });
  expect((await api('/overview?agent=desk')).waiting).toMatchObject([
    { kind: 'release', id: 'desk-0', command: 'pawl releases serve desk-0 --agent desk --unfit "why"' },
  ]);
  expect(pawl.output()).toContain('Release desk-0 gets no user: it does not fit engine.');
});

it('is asked again by the next start, also after a kill, and what fits is not', async () => {
  await store.close();
  await pawl.kill('SIGKILL');
  pawl = await pawl.restart();
  store = await pawl.store();
  // At once: nothing is known of this start yet.
  expect(await say('desk')).toMatchObject({ status: 503 });
  await until(() => say('desk'), isRefused);
  expect(await told('desk', 'compatibility-checked')).toMatchObject([{ verdict: 'fail' }, { verdict: 'fail' }]);
  expect(await told('shop', 'compatibility-checked')).toHaveLength(1);
});

it('serves all the same by a person’s word', async () => {
  await api('/releases/desk-0/serve', { agent: 'desk', unfit: 'Its users write little.', by: 'ann' });
  const { by } = await until(
    () => say('desk'),
    ({ status }) => status === 200,
  );
  expect(by).toBe('desk-0');
  expect(await told('desk', 'compatibility-overridden')).toMatchObject([{ reason: 'Its users write little.' }]);
  await until(health, ({ problems }) => problems.length === 0);
  expect((await api('/overview?agent=desk')).waiting).toEqual([]);
});
