/** GRPO on what a user's own agent does: a server of theirs that asks the model and passes on what it says. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { agentEndpoint, agentProcess } from '../simulate/agent-environment.ts';
import type { ChatCodec } from '../simulate/engine-player.ts';
import type { Task } from '../simulate/environment.ts';
import { playFrozen } from './attempt.ts';
import { sequences } from './datum.ts';
import { environmentSource } from './episodes.ts';
import { TabularEngine } from './fixtures/tabular-engine.ts';
import { rightAnswer, toy } from './fixtures/toy.ts';
import { grpo } from './grpo.ts';
import { klDefault } from './kl.ts';

/** A digit is its token; messages just follow each other, and the stop token ends an answer. */
const codec: ChatCodec = {
  encode: (messages) =>
    messages.flatMap(({ role, content }) => [
      ...[...(content ?? '')].map(Number),
      ...(role === 'assistant' ? [toy.stop] : []),
    ]),
  decode: (tokens) => ({ message: { role: 'assistant', content: tokens.join('') } }),
  stopTokens: [toy.stop],
};

let agent: Server;
/** Asks twice: the question itself, and the same of a sub-agent whose answer it ignores. */
beforeAll(async () => {
  agent = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const { task, base_url, api_key } = JSON.parse(text);
    const ask = async (content: string): Promise<string> => {
      const answer = await fetch(`${base_url}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${api_key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] }),
      });
      return ((await answer.json()) as { choices: [{ message: { content: string } }] }).choices[0].message.content;
    };
    const [answer] = await Promise.all([ask(task.input), ask('8')]);
    response.end(JSON.stringify({ answer }));
  });
  await new Promise<void>((done) => agent.listen(0, '127.0.0.1', done));
});
afterAll(() => agent.close());

const tasks = [0, 1].map((n): Task<number> => ({ id: `t${n}`, type: 'digit', split: 'train', seed: n, data: n }));
const environment = () =>
  agentEndpoint<number>({
    name: 'digits',
    url: `http://127.0.0.1:${(agent.address() as AddressInfo).port}`,
    types: { digit: () => 0 },
    input: ({ data }) => String(data),
    grade: ({ task, answer }) => answer.startsWith(String(rightAnswer(task.data))),
    limits: { tokensPerTurn: 2, tokens: 16 },
  });

it('learns the toy task through the agent, sub-agents being sequences of their own', async () => {
  const engine = new TabularEngine(toy.vocabulary);
  engine.create('m');
  const source = environmentSource(environment(), tasks, codec);
  const attempts = await playFrozen(source, { engine, model: 'm', tasks: [1], attempts: 2, seed: 1 });
  for (const attempt of attempts[0]!) expect(sequences(attempt.turns)).toHaveLength(2);

  const schedule = { peak: 0.8, shape: 'constant', warmup: 0, floor: 1 } as const;
  const stage = grpo(source, {
    ...{ steps: 8, tasksPerStep: 2, attempts: 12, lengthNormaliser: 2, schedule },
    kl: { ...klDefault, coefficient: 0 },
  });
  const run = await stage.begin({ engine, model: 'm', start: '', seed: 3 });
  const rewards: number[] = [];
  for (let i = 0; i < stage.steps; i++) rewards.push((await run.step(i)).values.reward_mean!);
  expect(rewards[0]).toBeLessThan(0.35);
  expect(rewards.slice(-3).reduce((a, b) => a + b, 0) / 3).toBeGreaterThan(0.6);
});

it('says so when not one agent asks the model', async () => {
  const engine = new TabularEngine(toy.vocabulary);
  engine.create('m');
  const silent = agentProcess<number>({ name: 'silent', command: 'exit 4', types: { digit: () => 0 }, grade: () => 1 });
  const played = environmentSource(silent, tasks, codec).play({ engine, model: 'm', tasks: [0], attempts: 2, seed: 1 });
  await expect(played).rejects.toThrow(/Of 2 attempts in silent .* status 4/);
});
