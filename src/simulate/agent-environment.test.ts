import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import OpenAI from 'openai';
import { afterAll, describe, expect, test } from 'vitest';
import type { Engine } from '../engine/engine.ts';
import { outcome } from '../score/outcome.ts';
import { weighted } from '../score/weighted.ts';
import { type AgentOptions, agentEndpoint, agentProcess } from './agent-environment.ts';
import type { ProcessOptions } from './agent-process.ts';
import { type ChatCodec, enginePlayer } from './engine-player.ts';
import { makeTasks } from './environment.ts';
import { type Episode, type PlayOptions, play } from './episode.ts';
import { httpPlayer } from './http-player.ts';
import type { Player } from './player.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-own-agent-'));
const servers: Server[] = [];
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  for (const server of servers) server.close();
});

const stop = 1000;
const roles = { system: 1001, user: 1002, assistant: 1003, tool: 1004 } as const;
/** One token per character, a role's token before and a stop token after each message; `!name` is a tool call. */
const codec: ChatCodec = {
  encode: (messages, _tools, { generate }) => [
    ...messages.flatMap(({ role, content }) => [
      roles[role],
      ...Array.from(content ?? '', (c) => c.charCodeAt(0)),
      stop,
    ]),
    ...(generate ? [roles.assistant] : []),
  ],
  decode: (tokens) => {
    // A letter may come as itself or 2000 higher: tokens that no tokenizer would choose for the text.
    const text = String.fromCharCode(...tokens.map((token) => token % 2000));
    if (!text.startsWith('!')) return { message: { role: 'assistant', content: text } };
    const call = { id: 'call_0', type: 'function' as const, function: { name: text.slice(1), arguments: '{}' } };
    return { message: { role: 'assistant', content: null, tool_calls: [call] } };
  },
  stopTokens: [stop],
};

/** Says the seed's letter, twice, in tokens of its own; or whatever is given. */
const engineSaying = (text?: string): Pick<Engine, 'sample'> => ({
  sample: async (_model, prompts, { seed = 0 }) =>
    prompts.map(() => {
      const letter = 97 + (seed % 26);
      const said = text === undefined ? [letter, letter + 2000] : Array.from(text, (c) => c.charCodeAt(0));
      const tokens = Int32Array.from([...said, stop]);
      const logprobs = Float32Array.from(tokens, () => -0.5);
      return { version: 3, samples: [{ tokens, logprobs, rawLogprobs: logprobs, finish: 'stop' as const }] };
    }),
});
const player = (text?: string): Player => enginePlayer(engineSaying(text), 'm', codec);

type Data = { question: string };
const common: AgentOptions<Data> = {
  name: 'own',
  types: { ask: (random) => ({ question: `q${random.integer(0, 9)}` }) },
  grade: ({ answer }) => answer.includes('right'),
};
const tasks = makeTasks(agentProcess({ ...common, command: ['true'] }), 'train', 1, 1);

async function ended(
  how: Partial<AgentOptions<Data>> & ProcessOptions,
  by: Player = player(),
  options: PlayOptions = {},
): Promise<Episode> {
  return (await play(agentProcess({ ...common, cwd: folder, ...how }), by, tasks, options))[0]![0]!;
}

/** A program that can `ask()` the model and `hang()`. */
const program = (script: string): string[] => [
  process.execPath,
  '--input-type=module',
  '-e',
  `const ask = async () => {
    const headers = { authorization: 'Bearer ' + process.env.OPENAI_API_KEY, 'content-type': 'application/json' };
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] });
    return (await fetch(process.env.OPENAI_BASE_URL + '/chat/completions', { method: 'POST', headers, body })).status;
  };
  const hang = () => new Promise(() => setInterval(() => {}, 1000));
  ${script}`,
];

describe('an agent that is started', () => {
  const command = [process.execPath, fileURLToPath(new URL('fixtures/own-agent.mjs', import.meta.url))];

  test('sees the very tokens that training gets; a sub-agent is a sequence of its own, and going on repeats nothing', async () => {
    const environment = agentProcess({
      ...common,
      command,
      grade: ({ answer, outcomes }) => (answer.startsWith('[') ? outcomes.get('resolved')! : 0),
    });
    const [group] = await play(environment, player(), tasks, { attempts: 2, seed: 5 });
    for (const episode of group!) {
      expect(episode).toMatchObject({ outcome: 'done', reward: 1, success: true, counts: { completionTokens: 9 } });
      const [first, helped, second] = episode.turns.map(({ tokens }) => tokens!);
      const question = (tasks[0]!.data as Data).question;
      expect(first!.prompt).toEqual(codec.encode([{ role: 'user', content: question }], [], { generate: true }));
      expect(helped!.prompt).toEqual(codec.encode([{ role: 'user', content: 'help' }], [], { generate: true }));
      const before = [...first!.prompt, ...first!.completion];
      expect(second!.prompt.slice(0, before.length)).toEqual(before);
      expect(episode.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
    }
    // Attempts differ, and play again the same from the same seed.
    const [again] = await play(environment, player(), tasks, { attempts: 2, seed: 5 });
    const written = (episodes: Episode[]) => episodes.map(({ turns }) => turns.map(({ tokens }) => tokens!.completion));
    expect(written(again!)).toEqual(written(group!));
    expect(written(group!)[0]).not.toEqual(written(group!)[1]);
  });

  test('tells of the tokens it saw what the episode keeps', async () => {
    const printed: string[] = [];
    const episode = await ended({ command, grade: ({ answer }) => printed.push(answer) });
    const kept = episode.turns.map(({ tokens }) => ({ prompt: tokens!.prompt, completion: tokens!.completion }));
    expect(JSON.parse(printed[0]!)).toEqual(kept);
  });

  test('is not given what is Pawl’s own, and sees of a task what `input` shows', async () => {
    process.env.PAWL_SECRET = 'x';
    const shown: string[] = [];
    await ended({
      command: 'echo "$PAWL_SECRET|$PAWL_TASK|$MINE"',
      env: { MINE: 'yes' },
      input: () => 'only this',
      grade: ({ answer }) => shown.push(answer),
    });
    delete process.env.PAWL_SECRET;
    expect(shown[0]).toBe(`|{"id":"${tasks[0]!.id}","type":"ask","split":"train","input":"only this"}|yes`);
  });
});

describe('what an agent does is data', () => {
  test('one that crashes is graded by what it left behind, and never a success', async () => {
    expect(await ended({ command: 'echo oops >&2; exit 3' })).toMatchObject({
      ...{ outcome: 'died', reward: 0, success: false },
      reasons: ['the agent ended with status 3: oops'],
    });
    expect(await ended({ command: 'echo right; exit 3' })).toMatchObject({
      reward: 1,
      success: false,
      outcome: 'died',
    });
  });

  test('one that hangs is stopped at its time with all it started', async () => {
    const pids = join(folder, 'pids');
    const limits = { seconds: 1 };
    const command = `sleep 1000 & echo $! > ${pids}; echo $$ >> ${pids}; sleep 1000`;
    const episode = await ended({ command, limits });
    expect(episode).toMatchObject({ outcome: 'limit', reward: 0, reasons: ['out of time after 1 s'] });
    for (const pid of readFileSync(pids, 'utf8').trim().split('\n')) expect(await isGone(Number(pid))).toBe(true);
  });

  test('one that forgets to end keeps what it printed, and one that leaves a child behind does not', async () => {
    expect(await ended({ command: 'echo right; sleep 1000', limits: { seconds: 1 } })).toMatchObject({
      ...{ outcome: 'limit', reward: 1, success: false },
    });
    const pid = join(folder, 'left');
    expect(await ended({ command: `sleep 1000 & echo $! > ${pid}; echo right` })).toMatchObject({
      ...{ outcome: 'done', success: true },
    });
    expect(await isGone(Number(readFileSync(pid, 'utf8')))).toBe(true);
  });

  test('one that asks without end is stopped at the limit of calls', async () => {
    const episode = await ended({ command: program('while (await ask()); await hang();'), limits: { turns: 2 } });
    expect(episode).toMatchObject({ outcome: 'limit', detail: 'the agent asked the model more than 2 times' });
    expect(episode.turns).toHaveLength(2);
  });

  test('one whose prompt does not fit is told so, and goes on as it likes', async () => {
    const episode = await ended({
      command: program("if ((await ask()) === 400) console.log('right');"),
      limits: { tokens: 4 },
    });
    expect(episode).toMatchObject({ outcome: 'done', reward: 1, turns: [] });
  });
});

/** What was killed takes a moment to be gone. */
async function isGone(pid: number): Promise<boolean> {
  for (let i = 0; i < 500 && isRunning(pid); i++) await sleep(10);
  return !isRunning(pid);
}

/** Killed and not yet collected by its new parent counts as gone. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

describe('what is nobody’s policy', () => {
  test('a model that cannot answer fails the episode at once, whatever the agent makes of it', async () => {
    const broken: Player = async () => [{ kind: 'failed', detail: 'engine down' }];
    const episode = await ended({ command: program("await ask(); console.log('right'); await hang();") }, broken);
    expect(episode).toMatchObject({ outcome: 'failed', detail: 'engine down', reward: 0 });
  });

  test('a command that is not there, and an endpoint where nobody answers', async () => {
    const [missing, nowhere] = await Promise.all([
      ended({ command: ['no-such-agent'] }),
      ended({ command: ['true'], cwd: '/no/such/folder' }),
    ]);
    expect(missing).toMatchObject({ outcome: 'failed', detail: expect.stringMatching(/"no-such-agent".*not found/) });
    expect(nowhere).toMatchObject({ outcome: 'failed', detail: expect.stringContaining('/no/such/folder') });
    const server = createServer();
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as AddressInfo;
    await new Promise((done) => server.close(done));
    const silent = agentEndpoint({ ...common, url: `http://127.0.0.1:${port}/` });
    const [[episode]] = (await play(silent, player(), tasks)) as [[Episode]];
    expect(episode).toMatchObject({ outcome: 'failed', detail: expect.stringContaining('Nobody answers') });
  });

  test('whoever stops the player gets its error when no agent runs any more', async () => {
    const abort = new AbortController();
    const pid = join(folder, 'stopped');
    const asking: Player = async () => {
      abort.abort(new Error('enough'));
      return [{ kind: 'failed', detail: 'stopped' }];
    };
    const command = program(
      `(await import('node:fs')).writeFileSync('${pid}', String(process.pid)); await ask(); await hang();`,
    );
    await expect(ended({ command }, asking, { signal: abort.signal })).rejects.toThrow('enough');
    expect(await isGone(Number(readFileSync(pid, 'utf8')))).toBe(true);
  });
});

test('an agent whose Pawl was killed ends too', async () => {
  const pid = join(folder, 'orphan');
  const script = join(import.meta.dirname, 'fixtures/own-agent-parent.ts');
  const parent = spawn(process.execPath, ['--import', 'tsx', script, pid], { stdio: ['ignore', 'ignore', 'inherit'] });
  const until = async (holds: () => boolean) => {
    while (!holds()) await sleep(20);
  };
  await until(() => existsSync(pid));
  const agent = Number(readFileSync(pid, 'utf8'));
  expect(isRunning(agent)).toBe(true);
  parent.kill('SIGKILL');
  await until(() => !isRunning(agent));
});

/** The user's agent as a server. */
async function endpoint(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/solve`;
}
type Posted = { task: { input: Data }; base_url: string; api_key: string };
async function posted(request: AsyncIterable<Buffer>): Promise<Posted> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return JSON.parse(text);
}
const agentOf = (work: (client: OpenAI, task: Data) => Promise<unknown>) =>
  endpoint(async (request, response) => {
    const { task, base_url: baseURL, api_key: apiKey } = await posted(request);
    try {
      response.end(JSON.stringify({ answer: await work(new OpenAI({ baseURL, apiKey }), task.input) }));
    } catch (error) {
      response.writeHead(500).end((error as Error).message);
    }
  });
const solved = async (how: Partial<AgentOptions<Data>>, url: string, by = player()) =>
  (await play(agentEndpoint({ ...common, ...how, url }), by, tasks))[0]![0]!;

describe('an agent that is asked', () => {
  const messages = [{ role: 'user' as const, content: 'hi' }];

  test('speaks with the model through OpenAI’s client, streamed and with tools', async () => {
    const url = await agentOf(async (client) => {
      const { data: models } = await client.models.list();
      const stream = client.chat.completions.stream({ model: models[0]!.id, messages, temperature: 0 });
      const { choices, usage } = await stream.finalChatCompletion();
      const call = choices[0]!.message.tool_calls![0]!;
      const results = [choices[0]!.message, { role: 'tool' as const, tool_call_id: call.id, content: 'ok' }];
      const next = await client.chat.completions.create({ model: 'any', messages: [...messages, ...results] });
      return [call, choices[0]!.finish_reason, usage, next.usage!.prompt_tokens];
    });
    const answers: string[] = [];
    const episode = await solved({ grade: ({ answer }) => answers.push(answer) > 0 }, url, player('!look'));
    expect(episode).toMatchObject({ detail: '', outcome: 'done', success: true });
    const [call, reason] = JSON.parse(answers[0]!);
    expect(call).toMatchObject({ type: 'function', function: { name: 'look', arguments: '{}' } });
    expect(reason).toBe('tool_calls');
    const [first, second] = episode.turns.map(({ tokens }) => tokens!);
    const before = [...first!.prompt, ...first!.completion];
    expect(second!.prompt).toEqual([...before, roles.tool, 111, 107, stop, roles.assistant]);
  });

  test('is answered by whatever plays: a release behind the gateway has no tokens to tell, and is graded all the same', async () => {
    const gateway = await endpoint((request, response) => {
      const message = { role: 'assistant', content: `right, ${request.url}` };
      response.end(JSON.stringify({ choices: [{ message, finish_reason: 'stop' }] }));
    });
    const url = await agentOf(async (client) => {
      const { choices } = await client.chat.completions.create({ model: 'm', messages });
      return choices[0]!.message.content;
    });
    const release = httpPlayer({ baseUrl: `${gateway}/t/{trajectory}/v1`, model: 'own' });
    expect(await solved({ grade: ({ answer }) => /^right, .*\/t\/own/.test(answer) }, url, release)).toMatchObject({
      ...{ outcome: 'done', success: true },
      turns: [{ tokens: null }],
    });
  });

  test('is refused what cannot be honoured, and the key of an episode that is over', async () => {
    let kept: OpenAI | undefined;
    const url = await agentOf(async (client) => {
      kept = client;
      const refused = await client.chat.completions.create({ model: 'm', messages, n: 2, stop: 'x' }).catch((e) => e);
      return (refused as Error).message;
    });
    const answers: string[] = [];
    await solved({ grade: ({ answer }) => answers.push(answer) > 0 }, url);
    expect(answers[0]).toBe('400 n, stop cannot be honoured while an agent practises; leave them out.');
    await expect(kept!.chat.completions.create({ model: 'm', messages }, { maxRetries: 0 })).rejects.toThrow();
  });

  test('that answers with an error has died; one that never answers is out of time', async () => {
    const failing = await agentOf(async () => {
      throw new Error('bug');
    });
    expect(await solved({}, failing)).toMatchObject({
      outcome: 'died',
      reward: 0,
      detail: expect.stringMatching(/500: bug/),
    });
    const hanging = await endpoint(() => {});
    expect(await solved({ limits: { seconds: 0.2 } }, hanging)).toMatchObject({ outcome: 'limit', reward: 0 });
    const breaking = await endpoint((request) => request.socket.destroy());
    expect(await solved({}, breaking)).toMatchObject({ outcome: 'died', detail: expect.stringContaining('broke off') });
  });

  test('is rewarded by the outcomes it posts, or by scorers that read them', async () => {
    const url = await agentOf(async (client) => {
      await client.chat.completions.create({ model: 'm', messages });
      await client.post('/outcomes', { body: { name: 'hours', value: 12 } });
      await client.post('/outcomes', { body: { name: 'solved', value: false } });
    });
    const { grade: _, ...ungraded } = common;
    const by = async (how: Partial<AgentOptions<Data>>) =>
      (await play(agentEndpoint({ ...ungraded, ...how, url }), player(), tasks))[0]![0]!;
    expect(await by({})).toMatchObject({ reward: 0.5, parts: { hours: 1, solved: 0 } });
    const reward = weighted({ speed: [1, outcome('hours', { worst: 48, best: 0 })] });
    expect(await by({ reward })).toMatchObject({ reward: 0.75, success: true, parts: { speed: 0.75 } });
    const unknown = weighted({ votes: [1, outcome('votes')] });
    expect(await by({ reward: unknown })).toMatchObject({
      outcome: 'crashed',
      detail: expect.stringMatching(/no scorer could tell/),
    });
  });
});

test('settings that cannot work are refused with a sentence', () => {
  expect(() => agentProcess({ ...common, command: [] })).toThrow(/empty command/);
  expect(() => agentEndpoint({ ...common, url: 'localhost:80' })).toThrow(/'localhost:80'/);
  expect(() => agentProcess({ ...common, command: 'x', concurrency: 0 })).toThrow(/concurrency 0/);
  expect(() => agentProcess({ ...common, command: 'x', reward: weighted({ a: [1, outcome('a')] }) })).toThrow(/both/);
});
