import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { echoEngine, writeEchoCheckpoint } from './fixtures/echo-engine.ts';
import { writeModel } from './fixtures/write-model.ts';
import { createOnnxEngine } from './onnx/engine.ts';
import { type ServeHandle, serve } from './serve.ts';
import { createServedModels, type ServedModels } from './served.ts';

const call = '<tool_call>\n{"name": "find_order", "arguments": {"id": "12"}}\n</tool_call>';
let reply = (_prompt: string, attempt: number) => `Hello ${attempt}`;
/** When set, every step of the generation waits for it. */
let gate: Promise<void> | undefined;
const engine = echoEngine((prompt, attempt) => reply(prompt, attempt), {
  onStep: async () => {
    await (gate ?? new Promise((done) => setImmediate(done)));
  },
});

let dir: string;
let models: ServedModels;
let server: ServeHandle;
let client: OpenAI;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'pawl-serve-'));
  await writeEchoCheckpoint(join(dir, 'echo'));
  models = createServedModels(engine);
  await models.load('echo', join(dir, 'echo'));
  server = await serve({ engine, models, maxBodyBytes: 100_000 });
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
});
afterAll(async () => {
  await server.close();
  await rm(dir, { recursive: true });
});
beforeEach(() => {
  reply = (_prompt, attempt) => `Hello ${attempt}`;
  gate = undefined;
});

const tokenizer = () => models.list()[0]!.tokenizer!;
const messages = [{ role: 'user' as const, content: 'hi' }];
const tools = [
  {
    type: 'function' as const,
    function: { name: 'find_order', parameters: { type: 'object', properties: { id: { type: 'string' } } } },
  },
];
const raw = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${server.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

type Logprobs = { readonly content: readonly unknown[] } | null;
type Choice = {
  readonly index: number;
  readonly text: string;
  readonly message: { readonly content: string };
  readonly delta: { readonly content?: string };
  readonly finish_reason: string | null;
  readonly logprobs: Logprobs;
  readonly token_ids?: readonly number[];
  readonly prompt_token_ids?: readonly number[];
};
type Answer = {
  readonly choices: readonly Choice[];
  readonly usage: { readonly completion_tokens: number };
  readonly prompt_token_ids?: readonly number[];
};

const answerOf = async (response: Response) => (await response.json()) as Answer;

/** The chunks of an event stream, which must end with [DONE]. */
async function events(response: Response): Promise<Answer[]> {
  const lines = (await response.text()).split('\n\n').filter((line) => line !== '');
  expect(lines.pop()).toBe('data: [DONE]');
  return lines.map((line) => JSON.parse(line.slice('data: '.length)) as Answer);
}

describe('chat completions', () => {
  test('answer the rendered prompt, with usage that counts every token', async () => {
    let seen = '';
    reply = (prompt) => {
      seen = prompt;
      return 'Hello.';
    };
    const answer = await client.chat.completions.create({ model: 'echo', messages });
    expect(seen).toBe('<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n');
    expect(answer.choices[0]).toMatchObject({
      index: 0,
      finish_reason: 'stop',
      message: { role: 'assistant', content: 'Hello.' },
    });
    // the prompt: 3 control tokens and the bytes of "user\nhi", "\n", "assistant\n"; the answer: 6 bytes and <|im_end|>
    expect(answer.usage).toEqual({ prompt_tokens: 3 + 7 + 1 + 10, completion_tokens: 7, total_tokens: 28 });
  });

  test('stream the same text', async () => {
    reply = () => 'Schönen Tag 👍';
    const stream = await client.chat.completions.create({
      model: 'echo',
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    const parts: string[] = [];
    let usage: unknown;
    let finish: unknown;
    for await (const chunk of stream) {
      parts.push(chunk.choices[0]?.delta.content ?? '');
      finish = chunk.choices[0]?.finish_reason ?? finish;
      usage = chunk.usage ?? usage;
    }
    expect(parts.join('')).toBe('Schönen Tag 👍');
    expect(parts.filter((part) => part !== '').length).toBeGreaterThan(10);
    expect(finish).toBe('stop');
    expect(usage).toMatchObject({ completion_tokens: 18 }); // 13 characters, ö of 2 bytes, 👍 of 4, and the end
  });

  test('several choices, each with its own text', async () => {
    const answer = await client.chat.completions.create({ model: 'echo', messages, n: 3 });
    expect(answer.choices.map(({ index, message }) => [index, message.content])).toEqual([
      [0, 'Hello 0'],
      [1, 'Hello 1'],
      [2, 'Hello 2'],
    ]);
    const texts = ['', '', ''];
    for await (const chunk of await client.chat.completions.create({ model: 'echo', messages, n: 3, stream: true })) {
      for (const { index, delta } of chunk.choices) texts[index] += delta.content ?? '';
    }
    expect(texts).toEqual(['Hello 0', 'Hello 1', 'Hello 2']);
  });

  test('tool calls become tool_calls, streamed or not, and go back into the next prompt as the model wrote them', async () => {
    reply = () => `<think>\nLook.\n</think>\n\nOne moment.\n${call}\n${call}`;
    const answer = await client.chat.completions.create({ model: 'echo', messages, tools });
    const [choice] = answer.choices;
    expect(choice!.finish_reason).toBe('tool_calls');
    expect(choice!.message).toMatchObject({ content: 'One moment.', reasoning_content: 'Look.' });
    expect(choice!.message.tool_calls).toHaveLength(2);
    expect(choice!.message.tool_calls![0]).toMatchObject({
      type: 'function',
      function: { name: 'find_order', arguments: '{"id":"12"}' },
    });

    const streamed = await client.chat.completions.stream({ model: 'echo', messages, tools }).finalChatCompletion();
    const message = streamed.choices[0]!.message;
    expect(message.content).toBe('One moment.');
    expect(message.tool_calls!.map((c) => c.function)).toMatchObject([
      { name: 'find_order', arguments: '{"id":"12"}' },
      { name: 'find_order', arguments: '{"id":"12"}' },
    ]);
    expect(streamed.choices[0]!.finish_reason).toBe('tool_calls');

    let prompt = '';
    reply = (text) => {
      prompt = text;
      return 'ok';
    };
    await client.chat.completions.create({
      model: 'echo',
      tools,
      messages: [
        ...messages,
        choice!.message,
        ...choice!.message.tool_calls!.map((c) => ({ role: 'tool' as const, tool_call_id: c.id, content: 'found' })),
      ],
    });
    expect(prompt).toContain(`<think>\nLook.\n</think>\n\nOne moment.\n${call}\n${call}<|im_end|>`);
  });

  test('a malformed call stays in the content and is flagged', async () => {
    reply = () => '<tool_call>{"name": </tool_call>';
    const answer = await client.chat.completions.create({ model: 'echo', messages, tools });
    expect(answer.choices[0]!.finish_reason).toBe('stop');
    expect(answer.choices[0]!.message).toMatchObject({
      content: '<tool_call>{"name": </tool_call>',
      malformed_tool_calls: 1,
    });
  });

  test('without tools, with tool_choice none, or with one call at a time, the request is taken at its word', async () => {
    reply = () => `${call}\n${call}`;
    const plain = await client.chat.completions.create({ model: 'echo', messages });
    expect(plain.choices[0]!.message.content).toBe(`${call}\n${call}`);
    const none = await client.chat.completions.create({ model: 'echo', messages, tools, tool_choice: 'none' });
    expect(none.choices[0]!.message.tool_calls).toBeUndefined();
    const one = await client.chat.completions.create({ model: 'echo', messages, tools, parallel_tool_calls: false });
    expect(one.choices[0]!.message.tool_calls).toHaveLength(1);
  });

  test('stop strings end the text before them, also when they come in pieces', async () => {
    reply = () => 'one two three';
    const answer = await client.chat.completions.create({ model: 'echo', messages, stop: ['two'] });
    expect(answer.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'one ' } });
    let text = '';
    for await (const chunk of await client.chat.completions.create({
      model: 'echo',
      messages,
      stop: 'two',
      stream: true,
    })) {
      text += chunk.choices[0]!.delta.content ?? '';
    }
    expect(text).toBe('one ');
  });

  test('max_completion_tokens cuts, and says so', async () => {
    const answer = await client.chat.completions.create({ model: 'echo', messages, max_completion_tokens: 3 });
    expect(answer.choices[0]).toMatchObject({ finish_reason: 'length', message: { content: 'Hel' } });
  });

  test('logprobs are those of the sampled tokens: of the plain model, and as drawn', async () => {
    const answer = await client.chat.completions.create({ model: 'echo', messages, logprobs: true, max_tokens: 2 });
    expect(answer.choices[0]!.logprobs!.content).toEqual([
      { token: 'H', logprob: -0.5, sampled_logprob: -0.25, bytes: [72], top_logprobs: [] },
      { token: 'e', logprob: -0.5, sampled_logprob: -0.25, bytes: [101], top_logprobs: [] },
    ]);
    const chunks = await events(
      await raw('/v1/chat/completions', { model: 'echo', messages, logprobs: true, max_tokens: 2, stream: true }),
    );
    expect(chunks.flatMap((chunk) => chunk.choices[0]?.logprobs?.content ?? [])).toEqual(
      answer.choices[0]!.logprobs!.content,
    );
  });
});

describe('return_token_ids, in the shape of vLLM', () => {
  const prompt = () => tokenizer().encode('<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n');
  const answer = () => [...tokenizer().encode('é 0'), tokenizer().controls.get('<|endoftext|>')!.id];

  test('chat: the prompt at the top, the answer in its choice, the end token included', async () => {
    reply = (_, attempt) => `é ${attempt}`;
    const body = await answerOf(await raw('/v1/chat/completions', { model: 'echo', messages, return_token_ids: true }));
    expect(body.prompt_token_ids).toEqual(prompt());
    expect(body.choices[0]!.token_ids!.slice(0, -1)).toEqual(answer().slice(0, -1));
    expect(body.choices[0]!.token_ids).toHaveLength(5);
  });

  test('chat stream: the prompt in the first chunk only, every token of the answer exactly once', async () => {
    reply = (_, attempt) => `é ${attempt}`;
    const request = { model: 'echo', messages, return_token_ids: true, stream: true };
    const chunks = await events(await raw('/v1/chat/completions', request));
    expect(chunks[0]!.prompt_token_ids).toEqual(prompt());
    expect(chunks.slice(1).some((chunk) => 'prompt_token_ids' in chunk)).toBe(false);
    const tokens = chunks.flatMap((chunk) => chunk.choices[0]?.token_ids ?? []);
    expect(tokens.slice(0, -1)).toEqual(answer().slice(0, -1));
    expect(tokens).toHaveLength(5);
  });

  test('completions: both inside each choice', async () => {
    const body = await answerOf(
      await raw('/v1/completions', { model: 'echo', prompt: ['ab', 'c'], n: 2, return_token_ids: true }),
    );
    expect(body.choices.map((c) => [c.index, c.text, c.prompt_token_ids])).toEqual([
      [0, 'Hello 0', tokenizer().encode('ab')],
      [1, 'Hello 1', tokenizer().encode('ab')],
      [2, 'Hello 0', tokenizer().encode('c')],
      [3, 'Hello 1', tokenizer().encode('c')],
    ]);
  });

  test('are absent unless asked for', async () => {
    const text = await (await raw('/v1/chat/completions', { model: 'echo', messages })).text();
    expect(text).not.toContain('token_ids');
  });
});

describe('text completions', () => {
  test('take text or tokens', async () => {
    let seen: string[] = [];
    reply = (prompt) => {
      seen.push(prompt);
      return 'x';
    };
    for (const prompt of ['ab', ['ab', 'c'], tokenizer().encode('ab'), [tokenizer().encode('c')]]) {
      await client.completions.create({ model: 'echo', prompt });
    }
    expect(seen).toEqual(['ab', 'ab', 'c', 'ab', 'c']);
    seen = [];
  });

  test('stream, with logprobs of the sampled tokens', async () => {
    let text = '';
    for await (const chunk of await client.completions.create({ model: 'echo', prompt: 'x', stream: true })) {
      text += chunk.choices[0]?.text ?? '';
    }
    expect(text).toBe('Hello 0');
    const answer = await client.completions.create({ model: 'echo', prompt: 'x', logprobs: 0, max_tokens: 2 });
    expect(answer.choices[0]!.logprobs).toMatchObject({
      tokens: ['H', 'e'],
      token_logprobs: [-0.5, -0.5],
      text_offset: [0, 1],
    });
  });
});

describe('what cannot be honoured is refused in the shape of OpenAI', () => {
  test.each<[object, RegExp]>([
    [{ logit_bias: { '5': 10 } }, /"logit_bias" is not supported/],
    [{ best_of: 4 }, /"best_of" is not supported/],
    [{ frequency_penalty: 0.5 }, /"frequency_penalty" is not supported/],
    [{ top_logprobs: 5, logprobs: true }, /"top_logprobs" is not supported: only the logprob of each sampled token/],
    [{ response_format: { type: 'json_object' } }, /constrained formats are not supported/],
    [{ tool_choice: 'required', tools }, /cannot be forced to call a tool/],
    [{ reasoning_effort: 'low' }, /"reasoning_effort" is not supported/],
    [{ made_up: 1 }, /"made_up" is not supported/],
    [{ n: 0 }, /"n"/],
    [{ temperature: -1 }, /"temperature"/],
    [{ max_tokens: 2000 }, /has 21 tokens and 2000 are asked for, but the model's context is 1024/],
    [{ messages: [] }, /"messages"/],
    [{ messages: [{ role: 'king', content: 'x' }] }, /"messages.0.role"/],
    [
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }] },
      /type "image_url" is not supported/,
    ],
    [{ messages: [{ role: 'user', content: 'x'.repeat(2000) }] }, /has 2019 tokens, but the model's context is 1024/],
  ])('%j', async (change, message) => {
    const response = await raw('/v1/chat/completions', { model: 'echo', messages, ...change });
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: { message: string; type: string; code: string } };
    expect(error.message).toMatch(message);
    expect(error.type).toBe('invalid_request_error');
  });

  test('a prompt that no context of this size could hold, before it is made tokens', async () => {
    const long = 'x'.repeat(90_000);
    for (const [path, body] of [
      ['/v1/chat/completions', { messages: [{ role: 'user', content: long }] }],
      ['/v1/completions', { prompt: long }],
    ] as const) {
      const { error } = (await (await raw(path, { model: 'echo', ...body })).json()) as { error: { message: string } };
      expect(error.message).toMatch(/^The prompt has 90\d{3} characters; .* context has at most 32768/);
    }
  });

  test('the values that change nothing are accepted', async () => {
    const harmless = {
      logit_bias: {},
      best_of: 1,
      frequency_penalty: 0,
      user: 'u',
      store: false,
      metadata: { a: 'b' },
      seed: 7,
    };
    expect((await raw('/v1/chat/completions', { model: 'echo', messages, ...harmless })).status).toBe(200);
  });

  test('unknown models, paths, methods, media types, broken and oversized bodies', async () => {
    await expect(client.chat.completions.create({ model: 'nope', messages })).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
      message: expect.stringContaining('loaded: echo'),
    });
    expect((await raw('/v1/nothing', {})).status).toBe(404);
    expect((await fetch(`${server.url}/v1/completions`)).status).toBe(405);
    expect((await raw('/v1/completions', '{}', { 'content-type': 'text/plain' })).status).toBe(415);
    expect((await raw('/v1/completions', '{"a":')).status).toBe(400);
    expect((await raw('/v1/completions', '[1]')).status).toBe(400);
    expect((await raw('/v1/completions', `"${'x'.repeat(100_001)}"`)).status).toBe(413);
    const outOfRange = await raw('/v1/completions', { model: 'echo', prompt: [265] });
    expect(await outOfRange.json()).toMatchObject({
      error: { message: 'Token 265 is out of range: the model has 265 tokens.' },
    });
    const empty = await raw('/v1/completions', { model: 'echo', prompt: '' });
    expect(await empty.json()).toMatchObject({ error: { code: 'empty_prompt' } });
    expect((await raw('/v1/chat/completions', `{"model":${'['.repeat(40_000)}${']'.repeat(40_000)}}`)).status).toBe(
      400,
    );
  });
});

describe('a model speaks as its own folder says', () => {
  const { families } = JSON.parse(readFileSync(new URL('fixtures/tokenizers.json', import.meta.url), 'utf8')) as {
    families: Record<string, { files: Record<string, string>; chats: { messages: unknown[]; text: string }[] }>;
  };
  const given = (files: Record<string, string>) =>
    new Map(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)] as const));

  test.each([
    ['SmolLM2', '<|im_end|>'],
    ['Qwen2.5', '<|im_end|>'],
    ['Llama 3', '<|eot_id|>'],
  ])('%s: its template makes the prompt, and its %s the end', async (family, end) => {
    const { files, chats } = families[family]!;
    const name = family.replaceAll(' ', '-');
    await writeEchoCheckpoint(join(dir, name), {}, given(files));
    await models.load(name, join(dir, name));
    let seen = '';
    reply = (prompt) => {
      seen = prompt;
      return 'Yes.';
    };
    const chat = { model: name, messages: chats[1]!.messages, chat_template_kwargs: { date_string: '16 Nov 2026' } };
    const body = await answerOf(await raw('/v1/chat/completions', { ...chat, return_token_ids: true }));
    expect(seen).toBe(chats[1]!.text);
    expect(body.choices[0]).toMatchObject({ message: { content: 'Yes.' }, finish_reason: 'stop' });
    const served = models.list().find((one) => one.name === name)!;
    expect(body.choices[0]!.token_ids!.at(-1)).toBe(served.tokenizer!.controls.get(end)!.id);
    await models.unload(name);
  });

  test('without a template, and without the control tokens of ours, it completes text and refuses to chat', async () => {
    const { 'chat_template.jinja': _, ...files } = families['Llama 3']!.files;
    await writeEchoCheckpoint(join(dir, 'mute'), {}, given(files));
    await models.load('mute', join(dir, 'mute'));
    const chat = await raw('/v1/chat/completions', { model: 'mute', messages });
    expect(chat.status).toBe(400);
    expect(await chat.json()).toMatchObject({
      error: {
        code: 'no_chat_template',
        message: expect.stringContaining('put its chat_template.jinja into its folder'),
      },
    });
    expect((await raw('/v1/completions', { model: 'mute', prompt: 'ab' })).status).toBe(200);
    await models.unload('mute');
  });
});

test('the AI SDK calls tools and streams', async () => {
  const provider = createOpenAICompatible({ name: 'pawl', baseURL: `${server.url}/v1`, includeUsage: true });
  reply = (prompt) => (prompt.includes('<tool_response>') ? 'It was sent.' : `<think>\nLook.\n</think>\n\n${call}`);
  const asked: unknown[] = [];
  const stream = streamText({
    model: provider('echo'),
    prompt: 'Where is order 12?',
    temperature: 0,
    stopWhen: stepCountIs(3),
    tools: {
      find_order: tool({
        description: 'Finds an order.',
        inputSchema: z.object({ id: z.string() }),
        execute: async (input) => {
          asked.push(input);
          return { status: 'sent' };
        },
      }),
    },
  });
  expect(await stream.text).toBe('It was sent.');
  expect(asked).toEqual([{ id: '12' }]);
  expect((await stream.steps)[0]!.reasoningText).toBe('Look.');
  expect((await stream.totalUsage).outputTokens).toBeGreaterThan(10);
});

test('a client that goes away stops the work', async () => {
  gate = new Promise(() => {});
  const before = engine.aborted;
  const leave = new AbortController();
  const request = client.chat.completions.create({ model: 'echo', messages }, { signal: leave.signal });
  await until(() => engine.running === 1);
  leave.abort();
  await expect(request).rejects.toThrow();
  // The server learns of it by the closed connection; nothing else opens the gate.
  await until(() => engine.running === 0);
  expect(engine.aborted).toBe(before + 1);
  gate = undefined;
});

test('beyond its limit the server asks to come back', async () => {
  const other = await serve({ engine, models, maxRequests: 1 });
  let open = () => {};
  gate = new Promise((done) => {
    open = done;
  });
  const ask = () =>
    fetch(`${other.url}/v1/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'echo', prompt: 'x' }),
    });
  const running = ask();
  await until(() => engine.running === 1);
  const refused = await ask();
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
  open();
  expect((await running).status).toBe(200);
  await other.close();
});

test('a name that a web page made for this machine is refused', async () => {
  const answer = await new Promise<number>((done) => {
    get(`${server.url}/health`, { headers: { host: 'evil.example' } }, (response) => {
      response.resume();
      done(response.statusCode!);
    });
  });
  expect(answer).toBe(403);
});

describe('with the embedded engine', () => {
  const real = createOnnxEngine({ threads: 1 });
  const served = createServedModels(real);
  let door: ServeHandle;
  beforeAll(async () => {
    await writeModel(join(dir, 'tiny'), 'd16-l2-h2-kv1-v300-f24-c256', ['the order was sent, the order was sent']);
    await served.load('tiny', join(dir, 'tiny'));
    door = await serve({ engine: real, models: served });
  });
  afterAll(async () => {
    await door.close();
    await real.close();
  });
  const ask = (change: object) =>
    fetch(`${door.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'tiny',
        messages,
        max_tokens: 40,
        seed: 5,
        n: 3,
        return_token_ids: true,
        ...change,
      }),
    });

  test('the stream and the whole answer are the same tokens and the same text', async () => {
    const whole = await answerOf(await ask({ logprobs: true }));
    const chunks = await events(await ask({ stream: true, stream_options: { include_usage: true } }));
    expect(chunks.at(-1)!.usage).toEqual(whole.usage);
    expect(chunks[0]!.prompt_token_ids).toEqual(whole.prompt_token_ids);
    for (const { index, message, token_ids: tokens, finish_reason: finish, logprobs } of whole.choices) {
      const own = chunks.flatMap((chunk) => chunk.choices.filter((choice) => choice.index === index));
      expect(own.map((choice) => choice.delta.content ?? '').join('')).toBe(message.content);
      expect(own.flatMap((choice) => choice.token_ids ?? [])).toEqual(tokens);
      expect(own.at(-1)!.finish_reason).toBe(finish);
      expect(logprobs!.content).toHaveLength(tokens!.length);
    }
    expect(new Set(whole.choices.map((choice) => choice.token_ids!.join())).size).toBe(3);
  });

  test('the logprobs of a prompt are those that its tokens had when they were sampled', async () => {
    const said = await answerOf(await ask({ n: 1, logprobs: true, max_tokens: 12, temperature: 1.5 }));
    const [prompt, written] = [said.prompt_token_ids!, said.choices[0]!.token_ids!];
    const complete = (more: object) =>
      fetch(`${door.url}/v1/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'tiny', prompt: [...prompt, ...written], max_tokens: 1, ...more }),
      });
    const told = (await (await complete({ prompt_logprobs: 0 })).json()) as {
      choices: [{ prompt_logprobs: (Record<string, { logprob: number }> | null)[] }];
    };
    const { prompt_logprobs: found } = told.choices[0];
    expect(found).toHaveLength(prompt.length + written.length);
    expect(found[0]).toBeNull();
    const sampled = said.choices[0]!.logprobs!.content as { logprob: number }[];
    for (const [i, id] of written.entries())
      expect(found[prompt.length + i]![id]!.logprob).toBeCloseTo(sampled[i]!.logprob, 3);
    expect((await complete({ prompt_logprobs: 0, stream: true })).status).toBe(400);
    expect((await complete({ prompt_logprobs: 3 })).status).toBe(400);
  });

  test('stop strings end the generation itself', async () => {
    const free = await answerOf(await ask({ n: 1, temperature: 0 }));
    const text: string = free.choices[0]!.message.content;
    const stop = [...text].at(Math.floor([...text].length / 2))!;
    const cut = await answerOf(await ask({ n: 1, temperature: 0, stop }));
    expect(cut.choices[0]!.message.content).toBe(text.slice(0, text.indexOf(stop)));
    expect(cut.choices[0]!.finish_reason).toBe('stop');
    expect(cut.usage.completion_tokens).toBeLessThan(free.usage.completion_tokens);
  });
});

test('an answer tells how full the memory is, to whoever asks for that', async () => {
  const asked = await raw('/v1/chat/completions', { model: 'echo', messages }, { 'x-tell-memory': '1' });
  const used = Number(asked.headers.get('x-memory-used'));
  expect(used).toBeGreaterThan(0);
  expect(used).toBeLessThanOrEqual(1);
  const plain = await raw('/v1/chat/completions', { model: 'echo', messages });
  expect(plain.headers.get('x-memory-used')).toBeNull();
});

test('health and models say what is loaded and how much memory is held', async () => {
  const health = (await (await fetch(`${server.url}/health`)).json()) as { memory: { rss: number } };
  expect(health).toMatchObject({ status: 'ok', pid: process.pid, models: [{ name: 'echo', context: 1024 }] });
  expect(health.memory.rss).toBeGreaterThan(1_000_000);
  const list = await client.models.list();
  expect(list.data.map((model) => model.id)).toEqual(['echo']);
  expect((await client.models.retrieve('echo')).id).toBe('echo');
});

describe('models come and go under running requests', () => {
  test('a request keeps the model it began with, and the old one leaves when it is done', async () => {
    let open = () => {};
    await models.load('swap', join(dir, 'echo'));
    const first = engine.names.at(-1)!;
    gate = new Promise((done) => {
      open = done;
    });
    const running = client.chat.completions.create({ model: 'swap', messages });
    await until(() => engine.running === 1);
    await models.replace('swap', join(dir, 'echo'));
    const second = engine.names.at(-1)!;
    expect(second).not.toBe(first);
    expect(engine.names).toContain(first);
    await models.snapshot('swap', 'frozen');
    const unloaded = models.unload('swap');
    await expect(client.chat.completions.create({ model: 'swap', messages })).rejects.toMatchObject({ status: 404 });
    await unloaded;
    expect(engine.names).not.toContain(second);
    expect(engine.names).toContain(first); // still answering
    open();
    expect((await running).choices[0]!.message.content).toBe('Hello 0');
    await until(() => !engine.names.includes(first));
    gate = undefined;
    expect((await client.chat.completions.create({ model: 'frozen', messages })).choices[0]!.message.content).toBe(
      'Hello 0',
    );
    await models.unload('frozen');
    expect(engine.names).toEqual(['echo']);
  });

  test('forty requests across ten reloads: all are answered', async () => {
    await models.load('busy', join(dir, 'echo'));
    const answers: Promise<OpenAI.ChatCompletion>[] = [];
    for (let i = 0; i < 10; i++) {
      for (let k = 0; k < 4; k++) answers.push(client.chat.completions.create({ model: 'busy', messages }));
      await models.replace('busy', join(dir, 'echo'));
    }
    for (const answer of await Promise.all(answers)) expect(answer.choices[0]!.message.content).toBe('Hello 0');
    await models.unload('busy');
    await until(() => engine.names.length === 1);
  });

  test('a checkpoint that cannot be loaded leaves the one that answers', async () => {
    await expect(models.load('echo', join(dir, 'echo'))).rejects.toThrow(/called echo is loaded already/);
    await expect(models.replace('echo', join(dir, 'missing'))).rejects.toThrow(/no checkpoint folder/);
    await expect(models.load('../etc', join(dir, 'echo'))).rejects.toThrow(/cannot be a model's name/);
    expect((await client.chat.completions.create({ model: 'echo', messages })).choices).toHaveLength(1);
  });
});

test('closing answers what is running and then lets go of every connection', async () => {
  const other = await serve({ engine, models });
  let open = () => {};
  gate = new Promise((done) => {
    open = done;
  });
  const asking = new OpenAI({ baseURL: `${other.url}/v1`, apiKey: 'none', maxRetries: 0 });
  const running = asking.chat.completions.create({ model: 'echo', messages });
  await until(() => engine.running === 1);
  const closed = other.close();
  await expect(fetch(`${other.url}/health`)).rejects.toThrow();
  open();
  expect((await running).choices[0]!.message.content).toBe('Hello 0');
  await closed;
});

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((done) => setTimeout(done, 2));
}
