/** Evaluating releases, against a server that stands for the gateway: what goes where, what counts, and what is kept. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { agentSchema } from '../agent.ts';
import { openArtifacts } from '../artifacts/open.ts';
import { settingsSchema } from '../config.ts';
import { type Environment, makeTask } from '../simulate/environment.ts';
import { readAudit } from '../store/audit.ts';
import { listReports } from '../store/reports.ts';
import { withStore } from '../store/test-store.ts';
import { caseSchema } from './case.ts';
import { type Report, reportSchema } from './report.ts';
import { type EvaluateReleases, evaluateReleases } from './run.ts';
import { makeCaseSuite, makeSuite } from './suite.ts';

type Data = { token: number };
/** The user says a number and leaves after the answer, which should be the next one. */
const world: Environment<Data, null> = {
  name: 'numbers',
  system: '',
  types: { any: (rng) => ({ token: rng.integer(0, 9) }) },
  data: z.strictObject({ token: z.int() }),
  database: () => null,
  tools: [],
  user: ({ data }) => ({ open: () => String(data.token), answer: () => null }),
  gradeTurn: () => ({ reward: 0, parts: {}, reasons: [] }),
  gradeEnd: ({ task, messages }) => {
    const success = messages.at(-1)?.content === String(task.data.token + 1);
    return { success, reward: success ? 1 : 0, parts: {}, reasons: success ? [] : ['wrong number'] };
  },
  limits: { turns: 2, callsPerTurn: 1, mistakes: 1, tokensPerTurn: 4, tokens: 64, seconds: 60, characters: 100 },
};
const tasks = Array.from({ length: 20 }, (_, i) => makeTask(world, 'any', 'golden', i));
const cases = Array.from({ length: 20 }, (_, i) =>
  caseSchema.parse({
    id: `c${i}`,
    type: 'any',
    messages: [{ role: 'user', content: String(i) }],
    expect: { equals: String(i + 1) },
  }),
);

type Seen = {
  url: string;
  headers: IncomingHttpHeaders;
  body: { seed: number; max_tokens?: number; messages: { content: string }[] };
};
let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** Releases by name: what each answers to a number; null is no answer, a number of three digits a status. */
async function gateway(releases: Record<string, (n: number) => string | number | null>) {
  const seen: Seen[] = [];
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Seen['body'];
    seen.push({ url: request.url!, headers: request.headers, body });
    const answer = releases[String(request.headers['x-pawl-release'])]!(Number(body.messages.at(-1)!.content));
    if (answer === null) return;
    response.writeHead(typeof answer === 'number' ? answer : 200, {
      'content-type': 'application/json',
      'retry-after': '0',
    });
    response.end(
      JSON.stringify({ choices: [{ message: { role: 'assistant', content: answer }, finish_reason: 'stop' }] }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const door = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, key: 'secret' };
  return { seen, play: { withDoor: <T>(use: (given: typeof door) => Promise<T>) => use(door) } };
}

const right = (n: number) => String(n + 1);
const wrong = () => 'no idea';
const store = await withStore();
const asked = (given: Partial<EvaluateReleases> & Pick<EvaluateReleases, 'play'>): EvaluateReleases => ({
  agent: agentSchema.parse({ name: `agent-${Math.random().toString(36).slice(2)}`, environment: world }),
  store,
  artifacts: openArtifacts({ home: '/nowhere' }),
  suite: makeCaseSuite('golden', cases),
  upstreams: {},
  baseline: { name: 'v1', upstream: 'engine', checkpoint: null, internal: false },
  candidate: { name: 'v2', upstream: 'engine', checkpoint: null, internal: false },
  ...given,
});

describe('evaluating releases', () => {
  it('addresses each by name, as an evaluation, in trajectories of their own', async () => {
    const { seen, play } = await gateway({ v1: wrong, v2: right });
    const report = await evaluateReleases(asked({ play, attempts: 2, seed: 3 }));
    expect(report).toMatchObject({ verdict: 'pass', attempts: 2, seed: 3, overall: { baseline: 0, candidate: 1 } });
    expect(seen).toHaveLength(80);
    expect(seen[0]!.headers).toMatchObject({
      authorization: 'Bearer secret',
      'x-pawl-release': 'v1',
      'x-pawl-origin': 'evaluation',
    });
    expect(seen[0]!.body).not.toHaveProperty('max_tokens');
    expect(new Set(seen.map(({ url }) => url)).size).toBe(80);
    expect(new Set(seen.map(({ body }) => body.seed)).size).toBe(40);
  });

  it('plays tasks through the gateway where there are no weights to load', async () => {
    const { seen, play } = await gateway({ v1: wrong, v2: right });
    const report = await evaluateReleases(asked({ play, suite: makeSuite('golden', tasks) }));
    expect(report).toMatchObject({ verdict: 'pass', drift: null, overall: { n: 20, baseline: 0, candidate: 1 } });
    expect(report.tasks[0]!.reasons).toEqual({ baseline: ['wrong number'], candidate: [] });
    expect(seen[0]!.body.max_tokens).toBe(4);
  });

  it('does not hold broken answers against the model, and says what broke', async () => {
    const { play } = await gateway({ v1: right, v2: (n) => (n < 10 ? 500 : right(n)) });
    const given = asked({ play });
    const report = await evaluateReleases(given);
    expect(report).toMatchObject({ verdict: 'unmeasured', overall: { n: 10, candidate: 1 } });
    expect(report.reasons[1]).toMatch(/^10 attempts broke, most often like this: http.* answered 500/);
  });

  it('leaves one row in the audit log with who asked and what was found', async () => {
    const { play } = await gateway({ v1: wrong, v2: right });
    const given = asked({ play, by: 'ann' });
    const { id } = await evaluateReleases(given);
    await evaluateReleases({ ...given, by: 'bob' });
    const rows = await readAudit(store, { agent: given.agent.name });
    expect(rows).toMatchObject([{ actor: 'ann', event: 'evaluation-ended', subject: id }]);
    expect(JSON.parse(rows[0]!.details)).toMatchObject({ candidate: 'v2', verdict: 'pass', suite: { name: 'golden' } });
  });

  it('gives up on answers that do not come, each after its time', async () => {
    const { play } = await gateway({ v1: right, v2: () => null });
    const evaluate = { timeoutSeconds: 0.1, concurrency: 20 };
    const agent = agentSchema.parse({ name: 'slow', evaluate });
    expect(await evaluateReleases(asked({ play, agent }))).toMatchObject({ verdict: 'unmeasured', overall: null });
  });

  it('keeps what was measured, and plays again what could not be', async () => {
    const given = asked(await gateway({ v1: wrong, v2: () => 404 }));
    expect((await evaluateReleases(given)).verdict).toBe('unmeasured');
    server.closeAllConnections();
    server.close();
    const up = await gateway({ v1: wrong, v2: right });
    const report = await evaluateReleases({ ...given, play: up.play });
    expect(report.verdict).toBe('pass');
    const count = up.seen.length;
    expect(await evaluateReleases({ ...given, play: up.play })).toEqual(report);
    expect(up.seen).toHaveLength(count);
    expect(await listReports(store, { agent: given.agent.name })).toEqual([report]);
    // Other rules are another question.
    const agent = { ...given.agent, evaluate: { ...given.agent.evaluate, improvement: 0.5 } };
    expect((await evaluateReleases({ ...given, agent, play: up.play })).id).not.toBe(report.id);
  });

  it('does not play the baseline again for another candidate, nor for cases that were played before', async () => {
    const { seen, play } = await gateway({ v1: wrong, v2: right, v3: right });
    const given = asked({ play, attempts: 2 });
    await evaluateReleases(given);
    expect(seen).toHaveLength(80);
    const other = await evaluateReleases({
      ...given,
      candidate: { name: 'v3', upstream: 'engine', checkpoint: null, internal: false },
    });
    expect(other).toMatchObject({ verdict: 'pass', overall: { baseline: 0, candidate: 1 }, tasks: { length: 20 } });
    expect(seen.slice(80).every(({ headers }) => headers['x-pawl-release'] === 'v3')).toBe(true);
    expect(seen).toHaveLength(120);
    // Two more cases: two attempts of each, by both.
    const more = caseSchema.parse({ ...cases[0], id: 'more' });
    await evaluateReleases({ ...given, suite: makeCaseSuite('golden', [...cases, more]) });
    expect(seen).toHaveLength(124);
    // Another seed is another play.
    await evaluateReleases({ ...given, seed: 9 });
    expect(seen).toHaveLength(204);
  });

  it('plays cases said differently and a broad suite beside it, and names what fell there', async () => {
    const { play } = await gateway({ v1: right, v2: (n) => (n < 100 ? right(n) : 'forgotten') });
    const broad = makeCaseSuite(
      'broad',
      cases.map(({ id }, i) =>
        caseSchema.parse({
          ...{ id, type: 'big', messages: [{ role: 'user', content: String(i + 100) }] },
          expect: { equals: String(i + 101) },
        }),
      ),
    );
    const { agent, ...given } = asked({ play, broad });
    const report = await evaluateReleases({
      ...given,
      agent: { ...agent, evaluate: { ...agent.evaluate, perturbed: 10 } },
    });
    expect(report.broad).toMatchObject({ suite: 'broad', comparison: { n: 20, baseline: 1, candidate: 0 } });
    expect(report.verdict).toBe('inconclusive');
    expect(report.reasons.join(' ')).toMatch(/type the broad suite broad fell from 100\.0% to 0\.0%/);
    // Said politely, the number is no longer all there is; both stumble alike, so nobody is asked about that.
    const gate = report.gates!.find(({ name }) => name === 'perturbed')!;
    expect(gate).toMatchObject({ verdict: 'pass', limit: 0.8 });
    expect(gate.candidate).toBe(gate.baseline);
    expect(gate.candidate).toBeLessThan(1);
  });

  /**
   * Servers that tell tokens: `own` is how likely the release finds each token that it writes, `others` how likely it finds those of
   * another; null: it cannot say. Who was asked for those is in `told`.
   */
  async function tellingGateway(own: Record<string, number>, others: Record<string, number | null>) {
    const told: string[] = [];
    server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const body = JSON.parse(Buffer.concat(chunks).toString());
      const release = String(request.headers['x-pawl-release']);
      if (request.url === '/v1/completions') {
        told.push(release);
        expect(body).toEqual({
          ...{ model: expect.any(String), prompt: [5, 6, 7, 8], max_tokens: 1, prompt_logprobs: 0 },
        });
        const logprob = others[release]!;
        response.writeHead(logprob === null ? 404 : 200, { 'content-type': 'application/json' });
        const of = (id: number) => ({ [id]: { logprob } });
        return response.end(JSON.stringify({ choices: [{ prompt_logprobs: [null, of(6), of(7), of(8)] }] }));
      }
      expect(body).toMatchObject({ return_token_ids: true, logprobs: true });
      response.writeHead(200, { 'content-type': 'application/json' });
      const content = String(Number(body.messages.at(-1).content) + 1);
      const logprobs = { content: [{ logprob: own[release] }, { logprob: own[release] }] };
      const choice = { message: { role: 'assistant', content }, finish_reason: 'stop', token_ids: [7, 8], logprobs };
      return response.end(JSON.stringify({ prompt_token_ids: [5, 6], choices: [choice] }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const door = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, key: 'secret' };
    return { told, play: { withDoor: <T>(use: (given: typeof door) => Promise<T>) => use(door) } };
  }
  const named = (name: string, upstream = 'engine', internal = false) => ({
    name,
    upstream,
    checkpoint: null,
    internal,
  });
  const gateOf = ({ gates }: Report, name: string) => gates!.find((gate) => gate.name === name);

  it('says how far it drifted and how much it considers, where the servers of both tell tokens', async () => {
    // The candidate is sure of every token; the baseline would have given each e⁻².
    const { told, play } = await tellingGateway({ sure: -0.1, open: -1, like: -1.5 }, { open: -2 });
    const given = asked({ play, attempts: 2, baseline: named('open'), candidate: named('sure') });
    const report = await evaluateReleases(given);
    expect(report.drift).toBeCloseTo(1.9);
    expect(report.verdict).toBe('fail');
    expect(report.reasons.join()).toMatch(/Gate drift: .*1\.90 nats.*Gate entropy: Entropy is 0\.100 .* 1\.000/);
    expect(gateOf(report, 'drift')).toMatchObject({
      ...{ verdict: 'fail', limit: 0.5, look: [{ task: 'c0', answer: '1' }, {}, {}] },
    });
    expect(gateOf(report, 'drift-from-base')).toBeUndefined();
    expect(told).toHaveLength(cases.length); // one attempt at each case is enough
    // Asked again with other rules, nothing is played anew, and drift is still known.
    const agent = agentSchema.parse({ name: given.agent.name, environment: world, evaluate: { gates: { drift: 2 } } });
    const again = await evaluateReleases({ ...given, agent });
    expect(again.drift).toBeCloseTo(1.9);
    const like = await evaluateReleases({ ...given, candidate: named('like') });
    expect(gateOf(like, 'drift')).toMatchObject({ verdict: 'pass' });
    // What is written at another temperature is no estimate of either.
    const cool = agentSchema.parse({ name: given.agent.name, environment: world, evaluate: { temperature: 0.5 } });
    const first = server;
    onTestFinished(() => void first.close());
    const { play: plain } = await gateway({ open: right, sure: right });
    expect(await evaluateReleases({ ...given, agent: cool, play: plain })).toMatchObject({ drift: null });
  });

  it('sees many small steps: drift is counted from what the candidate’s line began with too', async () => {
    const { told, play } = await tellingGateway({ v8: -1, v9: -1 }, { v8: -1.2, v1: -1.7, away: null });
    const given = asked({ play, baseline: named('v8'), candidate: named('v9'), base: named('v1') });
    const report = await evaluateReleases(given);
    expect(report).toMatchObject({
      ...{ verdict: 'fail', drift: expect.closeTo(0.2), base: { release: 'v1', drift: expect.closeTo(0.7) } },
    });
    expect(gateOf(report, 'drift')!.verdict).toBe('pass');
    expect(gateOf(report, 'drift-from-base')).toMatchObject({
      verdict: 'fail',
      candidate: report.base!.drift,
      limit: 0.5,
    });
    expect(report.reasons.join()).toContain(
      'Gate drift-from-base: Its answers drifted 0.70 nats per token from those of v1, the base, more than 0.5, in however many steps; `evaluate.base` names another release to count from.',
    );
    expect(reportSchema.parse(report)).toEqual(report);
    // A team that wants it so far says so in one place; another base is another question.
    const gates = { driftFromBase: 0.8 };
    const agent = agentSchema.parse({ name: given.agent.name, environment: world, evaluate: { gates } });
    expect(gateOf(await evaluateReleases({ ...given, agent }), 'drift-from-base')!.verdict).toBe('pass');
    const off = agentSchema.parse({ ...{ name: given.agent.name, evaluate: { gates: { driftFromBase: null } } } });
    told.length = 0;
    expect((await evaluateReleases({ ...given, agent: off })).base).toBeUndefined();
    expect(told).not.toContain('v1');
    // One that can no longer answer is asked a few times, not once a case, and holds nothing up.
    const gone = await evaluateReleases({ ...given, base: named('away') });
    expect(gone.base).toEqual({ release: 'away', drift: null });
    expect(gateOf(gone, 'drift-from-base')!.verdict).toBe('unmeasured');
    expect(told.filter((one) => one === 'away').length).toBeLessThan(cases.length);
  });

  it('says so of tasks as well', async () => {
    const { told, play } = await tellingGateway({ v8: -1, v9: -0.9 }, { v8: -1.2, v1: -1.7 });
    const given = asked({ play, baseline: named('v8'), candidate: named('v9'), base: named('v1') });
    const report = await evaluateReleases({ ...given, suite: makeSuite('golden', tasks), attempts: 2 });
    expect(report).toMatchObject({ drift: expect.closeTo(0.3), base: { drift: expect.closeTo(0.8) } });
    expect(gateOf(report, 'entropy')).toMatchObject({ verdict: 'pass', baseline: 1, candidate: expect.closeTo(0.9) });
    expect(told).toHaveLength(2 * tasks.length);
  });

  it('shows what an internal model wrote to no server outside the deployment', async () => {
    const { told, play } = await tellingGateway({ v8: -1, v9: -0.9 }, { v8: -1.2, v1: -1.7 });
    const settings = { adapters: { kind: 'vllm' }, baseUrl: 'http://gpu:8000/v1', inside: true };
    const { upstreams } = settingsSchema.parse({
      upstreams: { gpu: settings, rented: { ...settings, inside: false } },
    });
    const [candidate, base] = [named('v9', 'gpu', true), named('v1', 'gpu')];
    const report = await evaluateReleases(asked({ play, upstreams, candidate, base, baseline: named('v8', 'rented') }));
    expect(report).toMatchObject({ drift: null, base: { release: 'v1', drift: expect.closeTo(0.8) } });
    expect(told).not.toContain('v8');
  });

  it('stops when it is told to', async () => {
    const stop = new AbortController();
    const { play } = await gateway({ v1: () => null, v2: right });
    const under = evaluateReleases(asked({ play, signal: stop.signal }));
    stop.abort(new Error('enough'));
    await expect(under).rejects.toThrow('enough');
  });

  it('does not compare a release with itself', async () => {
    const { play } = await gateway({});
    const one = { name: 'v1', upstream: 'engine', checkpoint: null, internal: false };
    await expect(evaluateReleases(asked({ play, candidate: one }))).rejects.toThrow('compared with itself');
  });
});
