/** Several gateways on one database, and what is to serve first: a real database, and a handler in the place of a gateway with its engine. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { type FirstAgent, firstAsked, type Held, serveFirst } from '../deploy/first-release.ts';
import { yetToBeAsked } from '../deploy/fit.ts';
import { createRelease, serveRelease } from '../deploy/reconcile.ts';
import { compatibilitySettings } from '../evaluate/compatibility.ts';
import { readAudit } from '../store/audit.ts';
import { saveCompatibility } from '../store/compatibility.ts';
import { entry } from '../store/fixtures.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { servingRelease } from '../store/releases.ts';
import { withStore } from '../store/test-store.ts';
import { askFirst, holdFirst } from './first-releases.ts';

const model = (digit: string) => `model:${digit.repeat(64)}`;
const agent = (base: string, compatibility: object | null = {}): FirstAgent => ({
  ...{ name: 'desk', train: { base }, deploy: { compatibility: 'required' }, curate: { on: 'production' } },
  evaluate: compatibility === null ? {} : { compatibility: compatibilitySettings.parse(compatibility) },
});
const none = {} as Artifacts;
const first = (store: Store, of: FirstAgent) => serveFirst(store, none, [of]);

/** What a model says that fits; `before` is waited for by every call. */
const answering =
  (before: () => Promise<unknown> = async () => {}) =>
  (request: IncomingMessage, response: ServerResponse): boolean => {
    const say = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      // Without a body: whether the key is known.
      if (chunks.length === 0) return say(400, {});
      await before();
      say(200, { choices: [{ message: { content: 'Fine.' }, finish_reason: 'stop' }] });
    });
    return true;
  };

function gateway(
  store: Store,
  name: string,
  more: { load?: () => Promise<void>; before?: () => Promise<unknown> } = {},
) {
  const held = new Map<string, Held>();
  return async (of: FirstAgent) => {
    const waiting = await first(store, of);
    holdFirst(held, waiting);
    const parts = { store, held, process: name, log: pino({ level: 'silent' }) };
    const asks = { load: more.load ?? (async () => {}), gateway: { handle: answering(more.before) } };
    const part = askFirst({ ...parts, ...asks }, waiting);
    onTestFinished(() => part.close());
    return held;
  };
}
const rows = async (store: Store, event: string) =>
  (await readAudit(store, { agent: 'desk', event })).map(({ subject }) => subject);
const patient = { timeout: 60_000 };

it('is asked by one of the gateways that begin at once, and let in once', async () => {
  const store = await withStore();
  const held = await Promise.all(['a', 'b', 'c'].map((name) => gateway(store, name)(agent(model('a')))));
  expect(held.map((one) => one.get('desk')?.sentence)).toContain(
    'Release desk-0 of agent desk gets its first user once it was asked whether it fits engine: several turns, 4 requests at a time.',
  );
  await expect.poll(() => servingRelease(store, 'desk'), patient).not.toBeNull();
  expect(await rows(store, 'compatibility-checked')).toHaveLength(1);
  expect(await rows(store, 'release-served')).toHaveLength(1);
  // A gateway that begins later has nothing to ask.
  expect(await first(store, agent(model('a')))).toEqual([]);
});

it('that passed before a kill is let in by the next start, unasked', async () => {
  const store = await withStore();
  const [waiting] = await first(store, agent(model('a')));
  const { needs, server } = (await yetToBeAsked(
    { store, upstreams: {} },
    waiting!.agent,
    waiting!.release,
    firstAsked,
  ))!;
  const about = { agent: 'desk', release: 'desk-0', needs, server };
  await saveCompatibility(store, { ...about, verdict: 'pass', checks: [], at: Date.now() });
  expect(await first(store, agent(model('a')))).toEqual([]);
  expect((await servingRelease(store, 'desk'))?.name).toBe('desk-0');
});

it('does not take the place of what a person let in meanwhile', async () => {
  const store = await withStore();
  const other = await createRelease(store, { agent: 'desk', name: 'v1', upstream: 'gpu', model: 'v1' }, 'ann', 1);
  let served = false;
  const before = async () => {
    if (!served) await serveRelease(store, other, 'ann', Date.now());
    served = true;
  };
  const held = await gateway(store, 'a', { before })(agent(model('a')));
  await expect.poll(() => held.size, patient).toBe(0);
  expect(await rows(store, 'compatibility-checked')).toHaveLength(1);
  expect((await servingRelease(store, 'desk'))?.name).toBe('v1');
  expect(await rows(store, 'release-served')).toEqual([other.id]);
});

it('is not asked while the engine cannot load it', async () => {
  const store = await withStore();
  const load = () => Promise.reject(new Error('There is no such folder.'));
  const held = await gateway(store, 'a', { load })(agent(model('a')));
  await expect
    .poll(() => held.get('desk'), patient)
    .toEqual({
      isUnfit: false,
      sentence: 'Release desk-0 gets no user: engine cannot load it. There is no such folder.',
    });
  expect(await rows(store, 'compatibility-checked')).toEqual([]);
  expect(await servingRelease(store, 'desk')).toBeNull();
});

it('its traffic says what it has to be asked, where the settings do not', async () => {
  const store = await withStore();
  const startedAt = Date.now() - 60_000;
  await writeEntries(store, [entry.turn({ startedAt, promptTokens: 900, completionTokens: 20 })]);
  const [waiting] = await first(store, agent(model('a'), null));
  expect(waiting?.asked).toMatch(/^several turns, a context of 920 tokens, 4 requests/);
  expect(await servingRelease(store, 'desk')).toBeNull();
});

it('another model in the agent’s file is another release; where nothing is asked for, it serves at once', async () => {
  const store = await withStore();
  const names = async (base: string) => (await first(store, agent(base))).map(({ release }) => release.name);
  expect(await names(model('a'))).toEqual(['desk-0']);
  expect(await names(model('b'))).toEqual(['desk-0.2']);
  expect(await names(model('a'))).toEqual(['desk-0']);
  expect(await first(store, agent(model('c'), null))).toEqual([]);
  expect((await servingRelease(store, 'desk'))?.name).toBe('desk-0.3');
});
