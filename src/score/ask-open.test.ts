import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type JudgeServer, startJudge } from '../../test/judge-server.ts';
import { parseConfig } from '../config.ts';
import { makeRelease } from '../deploy/release.ts';
import { listJudging } from '../store/judging.ts';
import type { Store } from '../store/postgres.ts';
import { insertRelease } from '../store/releases.ts';
import { withStore } from '../store/test-store.ts';
import { type OpenJudgeOptions, openJudge } from './ask-open.ts';
import { converse, trajectory } from './fixtures.ts';
import { judge } from './judge.ts';
import { judgedLine } from './judge-print.ts';
import { contextOf, scoreOf, weighted } from './weighted.ts';

let server: JudgeServer;
let store: Store;
beforeAll(async () => {
  server = await startJudge();
  store = await withStore();
});
afterAll(() => server.close());
beforeEach(() => {
  Object.assign(server, { mood: 'well', obedient: false, verdict: () => ({ reasoning: 'Fine.', score: 0.8 }) });
  server.bodies.length = 0;
});

type Settings = Record<string, unknown>;
const configOf = (judging: Settings = {}, upstream: Settings = {}) =>
  parseConfig(
    {
      upstreams: { box: { baseUrl: server.url, price: { prompt: 2, completion: 10 }, ...upstream } },
      judge: { upstream: 'box', model: 'judge', timeoutSeconds: 5, ...judging },
    },
    {},
    '/',
  );
const spec = weighted({ judge: [1, judge()] });
let conversations = 0;
/** Of words that nobody said before. */
const conversation = (say = 'It is on its way.') => ({
  trajectory: trajectory({ id: `c-${++conversations}` }),
  turns: converse(`Where is order ${conversations}?`, [{ say }]),
  signals: [],
});
const open = (judging?: Settings, options: OpenJudgeOptions = {}) =>
  openJudge(store, { ...configOf(judging).agents[0]!, name: 'desk' }, { pauseMs: 1, ...options })!;
const about = { day: '2026-11-18', at: 0 };
const score = (asked = conversation(), with_ = open()) => scoreOf(spec, asked, about, { judge: with_ });

describe('a judge that is well', () => {
  it('is asked once for a verdict, which is then kept', async () => {
    const asked = conversation();
    const first = open();
    expect((await score(asked, first)).parts.judge).toMatchObject({ value: 0.8, reason: 'Fine.' });
    expect(first.counts()).toEqual({
      calls: 1,
      promptTokens: 1000,
      completionTokens: 100,
      money: 0.003,
      known: 0,
      asked: 1,
      withheld: 0,
    });
    const second = open();
    expect((await score(asked, second)).total).toBe(0.8);
    expect(second.counts()).toMatchObject({ calls: 0, money: 0, known: 1 });
    expect(server.bodies).toHaveLength(1);
  });
});

describe('a judge that is not well', () => {
  const failed = expect.objectContaining({ value: null, failed: true });

  it('is waited for when it is busy, and asked again', async () => {
    server.mood = { busy: 2 };
    expect((await score()).total).toBe(0.8);
    expect(server.bodies).toHaveLength(3);
  });

  it.each([
    ['is down', 'down', 4, 'answered 503'],
    ['is behind a proxy that answers with a page', 'html', 4, 'answered 502'],
    ['does not answer', 'silent', 2, 'did not answer within 0.2 s'],
    ['does not know the model', 'unknown-model', 1, 'answered 404'],
    ['writes prose', 'prose', 3, 'is no JSON'],
    ['is cut off', 'cut', 1, 'cut off; raise judge.maxTokens'],
  ] as const)('%s: the part has failed, and the conversation has no score', async (_, mood, calls, why) => {
    server.mood = mood;
    const settings = mood === 'silent' ? { timeoutSeconds: 0.2, attempts: 2 } : {};
    const { total, parts } = await score(conversation(), open(settings));
    expect(total).toBeNull();
    expect(parts.judge).toEqual(failed);
    expect(parts.judge!.reason).toContain(why);
    expect(server.bodies).toHaveLength(calls);
  });

  it.each([
    ['says 1.7', { reasoning: 'Great.', score: 1.7 }],
    ['says −0.1', { reasoning: 'Bad.', score: -0.1 }],
    ['says it in words', { reasoning: 'Great.', score: '0.9' }],
    ['leaves out why', { score: 0.9 }],
    ['adds something', { reasoning: 'Great.', score: 0.9, confidence: 1 }],
  ])('%s: that is no verdict, and is not made one', async (_, verdict) => {
    server.verdict = () => verdict;
    const { total, parts } = await score();
    expect([total, parts.judge]).toEqual([null, failed]);
    expect(parts.judge!.reason).toContain('is no verdict');
    expect(server.bodies.map(({ temperature }) => temperature)).toEqual([0, 0.7, 0.7]);
  });

  it.each(['fenced', 'thinks'] as const)('one that is %s is understood', async (mood) => {
    server.mood = mood;
    expect((await score()).total).toBe(0.8);
  });

  it.each(['response_format', 'max_tokens', 'temperature'] as const)(
    'one that refuses %s is asked without it from then on',
    async (refuses) => {
      server.mood = { refuses };
      const judging = open();
      expect((await score(conversation(), judging)).total).toBe(0.8);
      expect((await score(conversation(), judging)).total).toBe(0.8);
      expect(server.bodies.map((body) => refuses in body)).toEqual([true, false, false]);
    },
  );

  it('is not asked for the whole run when it is away ten times in a row', async () => {
    server.mood = 'down';
    const judging = open({ attempts: 1 });
    for (let i = 0; i < 15; i++) expect((await score(conversation(), judging)).parts.judge).toEqual(failed);
    expect(server.bodies).toHaveLength(10);
    server.mood = 'well';
    expect((await score()).total).toBe(0.8);
  });

  it('is asked about the next conversation when one was too long for it', async () => {
    server.mood = 'too-long';
    const judging = open();
    for (let i = 0; i < 12; i++) expect((await score(conversation(), judging)).parts.judge).toEqual(failed);
    expect(server.bodies).toHaveLength(12);
    server.mood = 'well';
    expect((await score(conversation(), judging)).total).toBe(0.8);
  });

  it('that gives no verdict on a conversation is asked again by the next run, then less and less often', async () => {
    const asked = conversation();
    server.mood = 'prose';
    let now = Date.now();
    const later = () => open({}, { now: () => now });
    for (let i = 0; i < 3; i++) await score(asked, later());
    expect(server.bodies).toHaveLength(6); // twice; the third time it is not asked
    expect((await score(asked, later())).parts.judge!.reason).toContain('asked 2 times');
    now += 31 * 60_000;
    server.mood = 'well';
    expect((await score(asked, later())).total).toBe(0.8);
    expect((await score(asked, later())).total).toBe(0.8);
    expect(server.bodies).toHaveLength(7);
  });
});

describe('what judging may take', () => {
  it('is no more calls at once than the settings say', async () => {
    let [inFlight, most] = [0, 0];
    const busy = createServer((request, response) => {
      most = Math.max(most, ++inFlight);
      response.on('close', () => inFlight--);
      setTimeout(() => response.writeHead(307).end(), 20);
      request.resume();
    });
    await new Promise<void>((resolve) => busy.listen(0, '127.0.0.1', resolve));
    const baseUrl = `http://127.0.0.1:${(busy.address() as AddressInfo).port}`;
    const { agents } = parseConfig(
      {
        upstreams: { box: { baseUrl } },
        judge: { upstream: 'box', model: 'judge', concurrency: 2, attempts: 1 },
      },
      {},
      '/',
    );
    const judging = openJudge(store, agents[0]!, { pauseMs: 1 });
    await Promise.all(Array.from({ length: 8 }, () => score(conversation(), judging)));
    expect(most).toBe(2);
    await new Promise((resolve) => busy.close(resolve));
  });

  it('is no more money than one run may spend; what is left over has failed and is asked by the next', async () => {
    // A call is expected to cost about 0.004 and costs 0.003.
    const judging = open({ budget: { run: 0.008 } });
    const conversations = [conversation(), conversation(), conversation()];
    const totals = [];
    for (const one of conversations) totals.push(await score(one, judging));
    expect(totals.map(({ total }) => total)).toEqual([0.8, 0.8, null]);
    expect(totals[2]!.parts.judge!.reason).toContain('budget of 0.008 for one run is spent');
    expect((await score(conversations[2], open({ budget: { run: 0.008 } }))).total).toBe(0.8);
  });

  it('is no more money where the server does not count: a call is taken to cost what was expected', async () => {
    server.mood = 'uncounted';
    const judging = open({ budget: { run: 0.01 } });
    const totals = [];
    for (let i = 0; i < 3; i++) totals.push((await score(conversation(), judging)).total);
    expect(totals).toEqual([0.8, 0.8, null]);
    expect(judging.counts()).toMatchObject({ calls: 2, completionTokens: 600 });
    expect(judging.counts().money).toBeGreaterThan(0.006);
  });

  it('is no more money than all may spend in a day, whoever spent it', async () => {
    const before = (await listJudging(store, 1)).reduce((sum, { money }) => sum + money, 0);
    const day = before + 0.005;
    expect((await score(conversation(), open({ budget: { day } }))).total).toBe(0.8);
    const { parts } = await score(conversation(), open({ budget: { day } }));
    expect(parts.judge!.reason).toContain('for a day is spent');
  });

  it('is written down, by agent, upstream and model', async () => {
    const mine = async () => (await listJudging(store, 1)).find(({ agent }) => agent === 'shop');
    const judging = openJudge(store, { ...configOf().agents[0]!, name: 'shop' })!;
    await score(conversation(), judging);
    await score(conversation(), judging);
    expect(await mine()).toMatchObject({
      ...{ agent: 'shop', upstream: 'box', model: 'judge', calls: 2, promptTokens: 2000, completionTokens: 200 },
      money: 0.006,
    });
  });

  it('can be known before: nothing for what is kept', async () => {
    const asked = conversation();
    const judging = open();
    const cost = async () => {
      const context = contextOf(asked, { judge: judging }, () => new AbortController().signal);
      return spec.parts[0]!.scorer.cost!(asked, context);
    };
    const { calls, money } = await cost();
    expect(calls).toBe(1);
    expect(money).toBeGreaterThan(0.003);
    expect(money).toBeLessThan(0.005);
    expect(server.bodies).toHaveLength(0);
    await score(asked, judging);
    expect(await cost()).toEqual({ calls: 0, money: 0 });
  });

  it('is not said to be nothing where nobody has said what a call costs', async () => {
    const { agents } = parseConfig(
      { upstreams: { box: { baseUrl: server.url } }, judge: { upstream: 'box', model: 'judge' } },
      {},
      '/',
    );
    const asked = conversation();
    const context = contextOf(asked, { judge: openJudge(store, agents[0]!)! }, () => new AbortController().signal);
    expect(await spec.parts[0]!.scorer.cost!(asked, context)).toEqual({ calls: 1, money: null });
  });
});

describe('a call', () => {
  it('says that it is a judge’s, brings the key, and asks for exactly the verdict’s schema', async () => {
    const [agent] = configOf({}, { key: 'sk-1' }).agents;
    await score(conversation(), openJudge(store, agent!)!);
    expect(server.headers.at(-1)).toMatchObject({ 'x-pawl-origin': 'judge', authorization: 'Bearer sk-1' });
    expect(server.bodies[0]!.response_format).toEqual({
      type: 'json_schema',
      json_schema: {
        name: 'verdict',
        strict: true,
        schema: {
          type: 'object',
          properties: {
            control: { type: 'string', pattern: '^[a-z]{8}$' },
            verdict: {
              type: 'object',
              properties: { reasoning: { type: 'string' }, score: { type: 'number', minimum: 0, maximum: 1 } },
              required: ['reasoning', 'score'],
              additionalProperties: false,
            },
          },
          required: ['control', 'verdict'],
          additionalProperties: false,
        },
      },
    });
  });

  it('goes to the judge that the agent names, or the scorer', async () => {
    const other = await startJudge();
    const settings = {
      upstreams: { box: { baseUrl: server.url }, other: { baseUrl: other.url } },
      judge: { upstream: 'box', model: 'judge' },
      agents: [{ name: 'desk', judge: { model: 'larger' } }],
    };
    const judging = openJudge(store, parseConfig(settings, {}, '/').agents[0]!)!;
    await score(conversation(), judging);
    const elsewhere = weighted({ judge: [1, judge({ upstream: 'other', model: 'largest' })] });
    await scoreOf(elsewhere, conversation(), about, { judge: judging });
    expect([server.bodies[0]!.model, other.bodies[0]!.model]).toEqual(['larger', 'largest']);
    await other.close();
  });

  it('is not made where no judge is configured: the part is unmeasured, not failed', async () => {
    const { agents } = parseConfig({ upstreams: { box: { baseUrl: server.url } } }, {}, '/');
    const { parts } = await scoreOf(spec, conversation(), about, { judge: openJudge(store, agents[0]!) });
    expect(parts.judge).toEqual({ value: null, weight: 1, reason: 'no judge is configured' });
  });

  it('keeps no address that the judge repeats', async () => {
    server.verdict = () => ({ reasoning: 'It wrote to ann@example.com.', score: 0.5 });
    const asked = conversation();
    const { parts } = await score(asked);
    expect(parts.judge!.reason).not.toContain('ann@example.com');
    const { rows } = await store.pool.query('select * from pawl.verdicts where trajectory = $1', [asked.trajectory.id]);
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toContain('ann@example.com');
    expect(JSON.stringify(rows)).not.toContain('order');
  });
});

it('settings name an upstream that is there, and a price where there is a budget', () => {
  const upstreams = { box: { baseUrl: server.url } };
  const judging = { upstream: 'box', model: 'm' };
  expect(() => parseConfig({ judge: judging }, {}, '/')).toThrow('judge.upstream: names no upstream: box');
  expect(() => parseConfig({ upstreams, judge: { ...judging, budget: { day: 5 } } }, {}, '/')).toThrow(
    'needs a price: set upstreams.box.price too',
  );
});

describe('what must not leave', () => {
  const insideOr = (inside: boolean, confidential: object = {}) => {
    const [agent] = parseConfig(
      {
        agents: [{ name: 'desk', curate: { confidential } }],
        upstreams: { box: { baseUrl: server.url, inside } },
        judge: { upstream: 'box', model: 'judge' },
      },
      {},
      '/',
    ).agents;
    return openJudge(store, agent!, { pauseMs: 1 })!;
  };
  const heron = { phrases: ['Project Heron'] };
  const costOf = (asked: ReturnType<typeof conversation>, judging: ReturnType<typeof openJudge>) =>
    spec.parts[0]!.scorer.cost!(
      asked,
      contextOf(asked, { judge: judging }, () => new AbortController().signal),
    );

  it('is shown to a judge inside and to no other: the part is unmeasured and says why', async () => {
    const asked = conversation('Ask those of project  HERON.');
    const outside = insideOr(false, heron);
    const { total, parts } = await score(asked, outside);
    expect(total).toBeNull();
    expect(parts.judge).toMatchObject({
      value: null,
      reason:
        'it holds what is confidential, and the judge is at upstream box, which is not known as part of the deployment (`inside: true`)',
    });
    expect(parts.judge!.failed).toBeUndefined();
    expect(await costOf(asked, outside)).toEqual({ calls: 0, money: 0 });
    expect(outside.counts()).toMatchObject({ withheld: 1, asked: 0, calls: 0 });
    expect(judgedLine(outside.counts())).toMatch(/not asked.* 1 was not shown to it: what is internal stays inside/);
    expect(server.bodies).toHaveLength(0);
    expect((await score(asked, insideOr(true, heron))).total).toBe(0.8);
    // A verdict that is kept shows nobody anything, but settings that differ shall not give what they would not have asked for.
    expect((await score(asked, insideOr(false, heron))).total).toBeNull();
    expect((await score(conversation(), insideOr(false, heron))).total).toBe(0.8);
  });

  it('is what an internal model said', async () => {
    const release = (name: string, internal: boolean) =>
      makeRelease({ agent: 'desk', name, upstream: 'own', model: name, internal }, 0);
    await insertRelease(store.db, release('heron-1', true));
    await insertRelease(store.db, release('plain-1', false));
    const by = (name: string) => {
      const asked = conversation();
      return { ...asked, turns: asked.turns.map((turn) => ({ ...turn, release: name })) };
    };
    const outside = insideOr(false);
    const { parts } = await score(by('heron-1'), outside);
    expect(parts.judge!.reason).toMatch(/^the model of heron-1 is internal, and the judge is at upstream box/);
    expect((await score(by('plain-1'), outside)).total).toBe(0.8);
    expect((await score(by('heron-1'), insideOr(true))).total).toBe(0.8);
  });

  it('is not sent either where a scorer of one’s own did not say that it would be', async () => {
    const judging = insideOr(false, heron);
    const ask = judging.about({ agent: 'desk', trajectory: 't', day: about.day, signal: new AbortController().signal });
    const verdict = await ask({ prompt: 'own 1', content: ['a number'], calls: 1 }, async (call) => {
      const material = [{ name: 'answer', text: 'Project Heron' }];
      const { so } = await call({ task: 'Is it so?', material, answer: z.strictObject({ so: z.boolean() }) });
      return { value: so ? 1 : 0, reason: '' };
    });
    expect(verdict).toMatchObject({ value: null, reason: expect.stringContaining('confidential') });
    expect(server.bodies).toHaveLength(0);
  });
});
