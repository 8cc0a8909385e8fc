/**
 * A team's own agent, from an empty folder to a better model and back: the packed package, a model server of theirs, users who
 * talk, vote and are helped or not, and then only commands. A question is a short word; who is answered with an a is helped.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ExportFormat } from '../src/curate/export.ts';
import { documented } from '../src/curate/fixtures.ts';
import type { Rollout } from '../src/deploy/rollout.ts';
import { type Project, packedProject, type Served } from './packed.ts';
import { until } from './pawl.ts';

const agent = 'helper';
const users = Array.from({ length: 60 }, (_, i) => `user-${i}`);
const helps = (answer: string | null) => answer?.startsWith('a') ?? false;

let upstream: Server;
let project: Project;
let served: Served;
beforeAll(async () => {
  [project, upstream] = await Promise.all([packedProject(), modelServer()]);
});
afterAll(async () => {
  await project?.remove();
  upstream?.closeAllConnections();
  upstream?.close();
});

/** `stand-in` helps with every other word, and whoever asks the same word again gets the other answer; `bad` never helps. */
async function modelServer(): Promise<Server> {
  const asked = new Map<string, number>();
  const answer = (model: string, word: string): string => {
    const before = asked.get(word) ?? 0;
    asked.set(word, before + 1);
    return model === 'stand-in' && (Number(word.slice(1)) + before) % 2 === 0 ? 'aaa' : 'no';
  };
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    response.writeHead(200, { 'content-type': 'application/json' });
    if (request.method === 'GET') {
      const data = ['stand-in', 'bad'].map((id) => ({ id, object: 'model', created: 1_760_000_000, owned_by: 'us' }));
      response.end(JSON.stringify({ object: 'list', data }));
      return;
    }
    const { model, messages } = JSON.parse(text) as { model: string; messages: { content: string }[] };
    const message = { role: 'assistant', content: answer(model, messages.at(-1)!.content) };
    response.end(
      JSON.stringify({
        ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1_760_000_000, model },
        choices: [{ index: 0, message, finish_reason: 'stop' }],
        usage: { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 },
      }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

const commands = new Set<string>();
const run = (...args: string[]) => {
  commands.add(args[0]!);
  return project.pawl(args);
};
async function pawl(...args: string[]): Promise<string> {
  const { code, out, err } = await run(...args);
  if (code !== 0) throw new Error(`pawl ${args.join(' ')} ended with ${code}:\n${out}${err}`);
  return out;
}
const json = async (...args: string[]) => JSON.parse(await pawl(...args, '--json'));

let conversations = 0;
/**
 * One conversation, as the client of the docs has it: a question, an answer, a vote, and what came of it. It asks for the same
 * model whatever answers. Resolves to the release that did.
 */
async function talk(user: string, word: string): Promise<string | null> {
  const trajectory = `talk-${conversations++}`;
  const client = new OpenAI({ baseURL: `${served.url}/t/${trajectory}/u/${user}/v1`, apiKey: served.key });
  const { data, response } = await client.chat.completions
    .create({ model: 'stand-in', max_tokens: 8, messages: [{ role: 'user', content: word }] })
    .withResponse();
  const helped = helps(data.choices[0]!.message.content);
  await client.post('/feedback', { body: { trajectory, user, vote: helped ? 'up' : 'down' } });
  await client.post('/outcomes', { body: { trajectory, name: 'resolved', value: helped } });
  return response.headers.get('x-pawl-release');
}

/** All of them, a few at the same time. */
async function inTurn<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const left = items.values();
  const worker = async () => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: 8 }, worker));
}

let questions = 0;
/** Every user asks something new. */
const wave = async (): Promise<(string | null)[]> => {
  const releases: (string | null)[] = [];
  await inTurn(users, async (user) => releases.push(await talk(user, `r${questions++}`)));
  return releases;
};

/** Traffic that goes on until the rollout has ended. */
async function ended(id: string): Promise<Rollout> {
  for (;;) {
    const [{ rollout }] = await Promise.all([json('rollouts', 'show', id), wave()]);
    if (rollout.endedAt !== null) return rollout;
  }
}
/** Resolves when this release answers everybody. */
const answeredBy = (release: string) => until(wave, (names) => names.every((name) => name === release));

/** What a user of the package changes in the files of `pawl init`. */
function edit(file: string, changes: Readonly<Record<string, string>>): void {
  const path = join(project.folder, file);
  let text = readFileSync(path, 'utf8');
  for (const [line, changed] of Object.entries(changes)) {
    expect(text).toContain(line);
    text = text.replace(line, changed);
  }
  writeFileSync(path, text);
}

describe('an agent of one’s own', () => {
  it('begins in an empty folder, and three hundred conversations are recorded with votes and outcomes', async () => {
    const address = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
    await pawl('init', '--agent', agent, '--upstream', address);
    edit(`agents/${agent}.ts`, {
      "// base: 'models/base',": "base: 'models/tiny', learningRate: 0.05,",
      'attempts: 4': 'temperature: 0, maxTokens: 8',
      "steps: [0.05, 0.25, 0.5, 1], approval: 'automatic'":
        "steps: [0.5, 1], holdSeconds: 1, minTurns: 10, minUnits: 5, latencySlackMs: 60_000, promotion: { rule: 'checks' }, shadow: { share: 0 }",
      '\n});': '\n  loop: { every: null, after: null },\n});',
    });
    const cases = Array.from({ length: 60 }, (_, i) => ({
      ...{ id: `case-${i}`, type: 'word', messages: [{ role: 'user', content: `g${i}` }] },
      expect: { matches: '^a' },
    }));
    writeFileSync(join(project.folder, 'golden.jsonl'), cases.map((one) => `${JSON.stringify(one)}\n`).join(''));

    served = await project.serve();
    await inTurn(users, async (user) => {
      const headers = { authorization: `Bearer ${served.adminToken}` };
      const given = await fetch(`${served.url}/api/consent/${user}?agent=${agent}`, { method: 'PUT', headers });
      expect(given.status).toBe(200);
    });
    // The last forty ask what the first forty asked.
    const talks = Array.from({ length: 300 }, (_, i) => ({ user: users[i % 60]!, word: `w${i % 260}` }));
    await inTurn(talks, ({ user, word }) => talk(user, word));
    type Health = { readonly recording: { readonly recorded: number } };
    await until(
      async () => (await (await fetch(`${served.url}/healthz`)).json()) as Health,
      ({ recording }) => recording.recorded >= 3 * talks.length,
    );
  });

  it('is scored, curated and exported for other trainers, and its dataset trains a small model', async () => {
    const [scored] = await Promise.all([
      json('score', 'run'),
      pawl('model', 'new', 'd16-l2-h2-kv1-v280-f24-c128', 'models/tiny'),
    ]);
    expect(scored).toMatchObject({ agent, trajectories: 300, scored: 300, mean: 0.5 });
    expect(await json('curate', 'run')).toMatchObject({
      ...{ id: 'helper-v1', rows: 150 },
      pairs: { rows: 40, sources: { votes: 40 } },
    });
    const lines = async (format: ExportFormat) => {
      const out = `${format}.jsonl`;
      await pawl('datasets', 'export', 'helper-v1', '--format', format, '--out', out);
      const text = readFileSync(join(project.folder, out), 'utf8').trim();
      return text.split('\n').map((line) => documented[format].parse(JSON.parse(line)));
    };
    const [trained, sft, preference, prompts, chat] = await Promise.all([
      json('train', '--agent', agent, '--dataset', 'helper-v1', '--id', 'first'),
      lines('trl-sft'),
      lines('trl-preference'),
      lines('trl-prompts'),
      lines('openai-chat'),
    ]);
    expect([sft, preference, prompts, chat].map(({ length }) => length)).toEqual([150, 40, 150, 150]);
    for (const pair of preference)
      expect(pair).toMatchObject({ chosen: [{ content: 'aaa' }], rejected: [{ content: 'no' }] });
    expect(trained).toMatchObject({
      ...{ id: 'first', recipe: 'sft', status: 'finished' },
      model: join(project.folder, '.pawl', 'models', 'first'),
    });
  });

  it('gets the better model, which golden cases and its users’ own traffic speak for', async () => {
    await pawl('releases', 'create', 'base', '--upstream', 'main', '--model', 'stand-in');
    await pawl('releases', 'serve', 'base', '--alias', 'stand-in');
    const from = ['--checkpoint', '.pawl/models/first', '--run', 'first', '--sampling', '{"temperature":0}'];
    expect(await json('releases', 'create', 'trained', ...from)).toMatchObject({ dataset: 'helper-v1' });
    expect(await json('evaluate', '--candidate', 'trained')).toMatchObject({
      ...{ verdict: 'pass', baseline: 'base' },
      overall: { n: 60, baseline: 0.5, candidate: 1 },
    });
    const { id } = await json('rollouts', 'start', '--candidate', 'trained');
    expect(await ended(id)).toMatchObject({ phase: 'promoted', step: 1 });
    await answeredBy('trained');
  });

  it('is spared a worse one: refused by the evaluation, rolled back when forced; and one command goes back', async () => {
    await pawl('releases', 'create', 'worse', '--upstream', 'main', '--model', 'bad');
    expect(await json('evaluate', '--candidate', 'worse')).toMatchObject({
      ...{ verdict: 'fail', baseline: 'trained' },
      overall: { baseline: 1, candidate: 0 },
    });
    const start = ['rollouts', 'start', '--candidate', 'worse'];
    const refused = await run(...start);
    expect(refused).toMatchObject({ code: 1, err: expect.stringMatching(/ended with fail/) });
    const { id } = await json(...start, '--force', '--reason', 'A dare.');
    const rollout = await ended(id);
    expect(rollout).toMatchObject({ phase: 'rolled-back', step: 0 });
    expect(rollout.reasons).toContainEqual(expect.stringMatching(/^resolved: .* worse, and chance does not/));
    await answeredBy('trained');
    await pawl('releases', 'serve', 'base', '--reason', 'Ours after all.');
    await answeredBy('base');
  });

  it('needed no command that `pawl --help` does not list', async () => {
    const { out } = await project.pawl(['--help']);
    const listed = [...out.matchAll(/^ {2}([a-z]+) {2,}/gm)].map(([, name]) => name);
    expect([...commands].filter((name) => !listed.includes(name))).toEqual([]);
  });
});
