import { expect, test } from 'vitest';
import type { Engine, SampleParams, Tokens } from '../engine/engine.ts';
import { type ChatCodec, enginePlayer, promptTokens } from './engine-player.ts';
import type { Message } from './message.ts';
import type { Conversation, PlayedTurn } from './player.ts';

const end = 1000;
/** One token per character, a role token before and an end token after each message: small, but a real template. */
const roles = { system: 1001, user: 1002, assistant: 1003, tool: 1004 } as const;
const codec: ChatCodec = {
  encode: (messages, _tools, { generate }) => [
    ...messages.flatMap(({ role, content }) => [
      roles[role],
      ...Array.from(content ?? '', (c) => c.charCodeAt(0)),
      end,
    ]),
    ...(generate ? [roles.assistant] : []),
  ],
  decode: (tokens) => {
    const text = String.fromCharCode(...tokens);
    if (!text.startsWith('!')) return { message: { role: 'assistant', content: text } };
    const message = {
      role: 'assistant' as const,
      content: null,
      tool_calls: [{ id: 'c', type: 'function' as const, function: { name: text.slice(1), arguments: '{}' } }],
    };
    return text === '!' ? { message: { role: 'assistant', content: text }, malformed: 'no name' } : { message };
  },
  stopTokens: [end],
};

/** Answers with the given texts; `keepStop` says whether the stop token is handed back. */
function engineSaying(texts: readonly string[], keepStop = true) {
  const calls: { prompts: readonly Tokens[]; params: SampleParams }[] = [];
  const sample: Engine['sample'] = async (_model, prompts, params) => {
    calls.push({ prompts, params });
    return prompts.map(() => ({
      version: 7,
      samples: Array.from({ length: params.n ?? 1 }, (_, attempt) => {
        const text = texts[attempt % texts.length]!;
        const tokens = Int32Array.from([...Array.from(text, (c) => c.charCodeAt(0)), ...(keepStop ? [end] : [])]);
        const logprobs = Float32Array.from(tokens, () => -0.5);
        return { tokens, logprobs, rawLogprobs: Float32Array.from(tokens, () => -0.25), finish: 'stop' as const };
      }),
    }));
  };
  return { engine: { sample } as Engine, calls };
}

const opening: readonly Message[] = [{ role: 'user', content: 'hi' }];
const conversation = (change: Partial<Conversation> = {}): Conversation => ({
  id: 'e',
  task: 't',
  attempt: 0,
  turn: 0,
  seed: 1,
  groupSeed: 2,
  messages: opening,
  tools: [],
  previous: null,
  maxTokens: 10,
  context: 100,
  ...change,
});
type Said = Extract<PlayedTurn, { kind: 'said' }>;

test('a turn keeps its exact tokens, both kinds of logprobs and the version of the weights', async () => {
  const { engine } = engineSaying(['ok']);
  const [answer] = (await enginePlayer(engine, 'm', codec)([conversation()])) as [Said];
  expect(answer.message).toEqual({ role: 'assistant', content: 'ok' });
  expect(answer.tokens).toEqual({
    prompt: [1002, 104, 105, end, 1003],
    completion: [111, 107, end],
    logprobs: [-0.5, -0.5, -0.5],
    rawLogprobs: [-0.25, -0.25, -0.25],
    version: 7,
  });
});

test.each([true, false])(
  'the next prompt extends prompt and completion token by token (stop token kept: %s)',
  async (keepStop) => {
    const { engine } = engineSaying(['!x'], keepStop);
    const [first] = (await enginePlayer(engine, 'm', codec)([conversation()])) as [Said];
    const messages: Message[] = [...opening, first.message, { role: 'tool', tool_call_id: 'c', content: 'r' }];
    const next = promptTokens(codec, conversation({ messages, previous: { tokens: first.tokens!, messages: 2 } }));
    const history = [...first.tokens!.prompt, ...first.tokens!.completion];
    expect(next.slice(0, history.length)).toEqual(history);
    // Exactly one end token between the completion and the tool's message, which the template opens.
    expect(next).toEqual([1002, 104, 105, end, 1003, 33, 120, end, 1004, 114, end, 1003]);
  },
);

test('what the model wrote is never tokenised again', () => {
  // 'ab' written as one odd token that the codec would never choose.
  const tokens = {
    prompt: [1002, 104, 105, end, 1003],
    completion: [555, end],
    logprobs: [0, 0],
    rawLogprobs: null,
    version: 1,
  };
  const messages: Message[] = [...opening, { role: 'assistant', content: 'ab' }, { role: 'user', content: 'y' }];
  expect(promptTokens(codec, conversation({ messages, previous: { tokens, messages: 2 } }))).toEqual([
    1002,
    104,
    105,
    end,
    1003,
    555,
    end,
    1002,
    121,
    end,
    1003,
  ]);
});

test('attempts with one prompt are one prompt to the engine; another prompt is another', async () => {
  const { engine, calls } = engineSaying(['a', 'b']);
  const other = conversation({ messages: [{ role: 'user', content: 'yo' }] });
  const answers = (await enginePlayer(engine, 'm', codec, { temperature: 0.7 })([
    conversation({ attempt: 0 }),
    other,
    conversation({ attempt: 1 }),
  ])) as Said[];
  expect(calls.map(({ prompts, params }) => [prompts.length, params.n, params.temperature, params.seed])).toEqual([
    [1, 2, 0.7, 2],
    [1, 1, 0.7, 2],
  ]);
  expect(answers.map(({ message }) => message.content)).toEqual(['a', 'a', 'b']);
});

test('equal prompts of different tasks are not mixed: the group seed keeps them apart', async () => {
  const { engine, calls } = engineSaying(['a']);
  await enginePlayer(engine, 'm', codec)([conversation(), conversation({ groupSeed: 3 })]);
  expect(calls.map(({ params }) => [params.n, params.seed])).toEqual([
    [1, 2],
    [1, 3],
  ]);
});

test('a turn gets no more tokens than the context has left, and none left is a full context', async () => {
  const { engine, calls } = engineSaying(['a']);
  const answers = await enginePlayer(engine, 'm', codec)([conversation({ context: 8 }), conversation({ context: 5 })]);
  expect(calls.map(({ params }) => params.maxTokens)).toEqual([3]);
  expect(answers[1]).toEqual({ kind: 'full', detail: '5 tokens of prompt leave no room in a context of 5' });
});

test('a prompt the engine refuses fails its own conversations only', async () => {
  const { engine } = engineSaying(['a']);
  const choosy = {
    sample: ((model, prompts, params, options) => {
      if (prompts[0]!.length > 5) throw new Error('too long');
      return engine.sample(model, prompts, params, options);
    }) as Engine['sample'],
  } as Engine;
  const long = conversation({ messages: [{ role: 'user', content: 'hello' }] });
  const answers = await enginePlayer(choosy, 'm', codec)([long, conversation()]);
  expect(answers).toMatchObject([{ kind: 'failed', detail: 'engine: too long' }, { kind: 'said' }]);
});

test('an unreadable tool call is said so', async () => {
  const { engine } = engineSaying(['!']);
  const [answer] = (await enginePlayer(engine, 'm', codec)([conversation()])) as [Said];
  expect(answer.malformed).toBe('no name');
});

test('a template that rewrites what came before is refused', () => {
  const rewriting: ChatCodec = {
    ...codec,
    encode: (messages, tools, options) => [messages.length, ...codec.encode(messages, tools, options)],
  };
  const tokens = { prompt: [1], completion: [2, end], logprobs: [0, 0], rawLogprobs: null, version: 1 };
  const messages: Message[] = [...opening, { role: 'assistant', content: 'a' }, { role: 'user', content: 'b' }];
  const next = conversation({ messages, previous: { tokens, messages: 2 } });
  expect(() => promptTokens(rewriting, next)).toThrow('it must only append');
});
