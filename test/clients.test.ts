/** Unmodified clients, pointed at Pawl by their base URL alone: the `openai` package and the Vercel AI SDK. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { listKeys } from '../src/store/keys.ts';
import type { Store } from '../src/store/postgres.ts';
import { readTrajectory, type WholeTrajectory } from '../src/store/trajectories.ts';
import { readWalls } from '../src/store/walls.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';
import { startUpstream, type TestUpstream } from './upstream.ts';

let upstream: TestUpstream;
let pawl: PawlProcess;
let store: Store;
beforeAll(async () => {
  upstream = await startUpstream();
  pawl = await startPawl({ PAWL_UPSTREAM: upstream.url, PAWL_UPSTREAM_KEY: 'upstream-secret' });
  store = await pawl.store();
});
afterAll(async () => {
  await store?.close();
  await pawl?.remove();
  await upstream?.close();
});

/** The trajectory once it has so many turns. */
const recorded = async (id: string, turns: number): Promise<WholeTrajectory> =>
  (await until(
    () => readTrajectory(store, id),
    (found) => (found?.turns.length ?? 0) >= turns,
  ))!;

const tools = [
  { type: 'function' as const, function: { name: 'find_order', parameters: { type: 'object', properties: {} } } },
  { type: 'function' as const, function: { name: 'weather', parameters: { type: 'object', properties: {} } } },
];

describe('the openai package', () => {
  const client = (trajectory: string) =>
    new OpenAI({ baseURL: `${pawl.url}/t/${trajectory}/v1`, apiKey: pawl.key, maxRetries: 0 });

  it('gets a whole answer, and the turn is recorded with what was said', async () => {
    const answer = await client('openai-json').chat.completions.create({
      model: 'echo',
      messages: [{ role: 'user', content: 'Hello, Zürich' }],
      user: 'ann',
    });
    expect(answer.choices[0]?.message.content).toBe('You said: Hello, Zürich');
    const { trajectory, turns } = await recorded('openai-json', 1);
    expect(trajectory).toMatchObject({
      agent: 'support-desk',
      user: expect.stringMatching(/^u_[\w-]{27}$/),
      origin: 'production',
      consent: 'unknown',
      turns: 1,
    });
    expect(turns[0]).toMatchObject({
      status: 'ok',
      httpStatus: 200,
      model: 'echo',
      upstream: 'default',
      release: 'default/echo',
      stream: false,
      promptTokens: answer.usage?.prompt_tokens,
      completionTokens: answer.usage?.completion_tokens,
    });
    expect(turns[0]!.request.messages).toEqual([{ role: 'user', content: 'Hello, Zürich' }]);
    expect(turns[0]!.choices[0]!.message.content).toBe('You said: Hello, Zürich');
    // Caps per key and the walls between regions and tenants go by the key that a turn came with.
    const [walls] = await readWalls(store, [trajectory]);
    expect(walls!.keys).toEqual([(await listKeys(store))[0]!.id]);
  });

  it('never shows its key to the upstream, nor the upstream’s key to anybody', async () => {
    const { response } = await client('secrets')
      .chat.completions.create({ model: 'echo', messages: [{ role: 'user', content: 'x' }] })
      .withResponse();
    expect(upstream.headers.at(-1)!.authorization).toBe('Bearer upstream-secret');
    expect(JSON.stringify(upstream.headers.at(-1))).not.toContain(pawl.key);
    expect(JSON.stringify([...response.headers])).not.toContain('upstream-secret');
    expect(response.headers.get('x-pawl-trajectory')).toBe('secrets');
  });

  it('streams tool calls that arrive in fragments, and they are recorded whole', async () => {
    const stream = await client('openai-stream').chat.completions.create({
      model: 'tools',
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: 'user', content: 'Where is order 1234?' }],
      tools,
    });
    let calls = '';
    for await (const chunk of stream)
      for (const call of chunk.choices[0]?.delta.tool_calls ?? []) calls += call.function?.arguments ?? '';
    expect(calls).toBe('{"order":"1234"}{"city":"Zürich"}');
    const { turns } = await recorded('openai-stream', 1);
    expect(turns[0]).toMatchObject({ status: 'ok', stream: true });
    expect(turns[0]!.promptTokens).toBeGreaterThan(0);
    expect(turns[0]!.firstTokenMs).not.toBeNull();
    expect(turns[0]!.choices[0]!.finishReason).toBe('tool_calls');
    expect(turns[0]!.choices[0]!.message.tool_calls).toMatchObject([
      { id: 'call_1', function: { name: 'find_order', arguments: '{"order":"1234"}' } },
      { id: 'call_2', function: { name: 'weather', arguments: '{"city":"Zürich"}' } },
    ]);
  });

  it('gets reasoning, alternatives, logprobs and token ids passed through, and they are recorded', async () => {
    const stream = await client('openai-extras').chat.completions.create({
      model: 'reasoner',
      stream: true,
      n: 2,
      logprobs: true,
      messages: [{ role: 'user', content: 'Think' }],
      ...{ return_token_ids: true, some_new_field: { kept: true } },
    });
    const text = ['', ''];
    for await (const chunk of stream)
      for (const choice of chunk.choices) text[choice.index] += choice.delta.content ?? '';
    expect(text).toEqual(['You said: Think', 'You said: Think']);
    expect(upstream.bodies.at(-1)).toMatchObject({ some_new_field: { kept: true } });
    const { turns } = await recorded('openai-extras', 1);
    expect(turns[0]!.choices).toHaveLength(2);
    expect(turns[0]!.choices[1]!.message).toMatchObject({
      content: 'You said: Think',
      reasoning_content: 'Let me think.',
    });
    expect(turns[0]!.choices[0]!.tokenIds).toEqual([...Buffer.from('You said: Think')]);
    expect(turns[0]!.choices[0]!.logprobs!.every((logprob) => Math.abs(logprob + 0.5) < 1e-6)).toBe(true);
    expect(turns[0]!.promptTokenIds!.length).toBeGreaterThan(0);
  });

  it('lists models, completes and embeds', async () => {
    const openai = client('openai-rest');
    expect((await openai.models.list()).data.map(({ id }) => id)).toContain('echo');
    expect((await openai.completions.create({ model: 'echo', prompt: 'Once' })).choices[0]?.text).toBe(
      'Completed: Once',
    );
    const embedded = await openai.embeddings.create({ model: 'echo', input: ['a', 'b'], encoding_format: 'float' });
    expect(embedded.data.map(({ embedding }) => embedding)).toEqual([
      [0.25, -0.5],
      [0.25, -0.5],
    ]);
    const { turns } = await recorded('openai-rest', 2);
    expect(turns.map(({ endpoint }) => endpoint).toSorted()).toEqual(['completions', 'embeddings']);
  });

  it('raises its own error classes for what goes wrong', async () => {
    const ask = (model: string, apiKey = pawl.key) =>
      new OpenAI({ baseURL: `${pawl.url}/v1`, apiKey, maxRetries: 0 }).chat.completions.create({ model, messages: [] });
    await expect(ask('refuse')).rejects.toBeInstanceOf(OpenAI.BadRequestError);
    await expect(ask('echo', 'pawl_wrong')).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
    await expect(ask('html-500')).rejects.toBeInstanceOf(OpenAI.InternalServerError);
    await expect(ask('busy-99')).rejects.toBeInstanceOf(OpenAI.RateLimitError);
  });

  it('has a conversation without any id threaded into one trajectory', async () => {
    const openai = new OpenAI({ baseURL: `${pawl.url}/v1`, apiKey: pawl.key });
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'system', content: 'Threading test' }];
    for (const content of ['first', 'second', 'third']) {
      messages.push({ role: 'user', content });
      const answer = await openai.chat.completions.create({ model: 'echo', messages });
      messages.push(answer.choices[0]!.message);
    }
    const { turns } = await until(
      async () => {
        const rows = await store.db
          .selectFrom('turns')
          .select(['trajectory'])
          .where('thread_key', 'is not', null)
          .orderBy('started_at', 'desc')
          .limit(1)
          .execute();
        return (rows[0] && (await readTrajectory(store, rows[0].trajectory))) ?? { turns: [] };
      },
      (found) => found.turns.length === 3 && JSON.stringify(found.turns[0]).includes('Threading test'),
    );
    expect(turns.map((turn) => turn.choices[0]!.message.content)).toEqual([
      'You said: first',
      'You said: second',
      'You said: third',
    ]);
  });
});

describe('the Vercel AI SDK', () => {
  const model = (trajectory: string, id: string) =>
    createOpenAICompatible({
      name: 'pawl',
      baseURL: `${pawl.url}/t/${trajectory}/v1`,
      apiKey: pawl.key,
      includeUsage: true,
    })(id);
  const sdkTools = {
    find_order: tool({ inputSchema: z.object({ order: z.string() }), execute: async () => ({ status: 'shipped' }) }),
    weather: tool({ inputSchema: z.object({ city: z.string() }), execute: async () => 'rain' }),
  };

  it('generates text', async () => {
    const { text } = await generateText({ model: model('ai-json', 'echo'), prompt: 'Hello' });
    expect(text).toBe('You said: Hello');
    await recorded('ai-json', 1);
  });

  it('runs a tool loop, each model call a turn of one trajectory', async () => {
    const { text, steps } = await generateText({
      model: model('ai-tools', 'tools'),
      prompt: 'Where is it?',
      tools: sdkTools,
      stopWhen: stepCountIs(3),
    });
    expect(steps).toHaveLength(2);
    expect(text).toBe('You said: Where is it?');
    const { turns } = await recorded('ai-tools', 2);
    expect(turns[0]!.choices[0]!.message.tool_calls).toHaveLength(2);
    expect(JSON.stringify(turns[1]!.request.messages)).toContain('shipped');
  });

  it('streams text and reasoning', async () => {
    const result = streamText({ model: model('ai-stream', 'reasoner'), prompt: 'Hi' });
    let text = '';
    for await (const part of result.textStream) text += part;
    expect(text).toBe('You said: Hi');
    expect(await result.reasoningText).toBe('Let me think.');
    const { turns } = await recorded('ai-stream', 1);
    expect(turns[0]!.choices[0]!.message).toMatchObject({
      content: 'You said: Hi',
      reasoning_content: 'Let me think.',
    });
  });
});
