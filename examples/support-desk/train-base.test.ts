import { readFile } from 'node:fs/promises';
import { type Message, play } from 'pawl';
import { chatCodec, createTokenizer, parameterCount, tokenizerConfig, trainTokenizer } from 'pawl/engine';
import { expect, test } from 'vitest';
import { corpus } from './corpus.ts';
import { supportDesk } from './desk.ts';
import { expert } from './expert.ts';
import { readGolden } from './golden.ts';
import { baseConfig, datumOf, learningRate, plainText, schedule, shape } from './train-base.ts';

const lines: (readonly Message[])[] = [];
for await (const messages of corpus({ seed: 1, conversations: 800 })) lines.push(messages);
const tokenizer = createTokenizer(
  trainTokenizer(lines.map(plainText), { vocabulary: shape.vocabulary }),
  tokenizerConfig(shape.context),
);
const template = await readFile(new URL('chat_template.jinja', import.meta.url), 'utf8');
const codec = chatCodec(tokenizer, template);

test('the model is small: under a million parameters, under 8 MB as float32', () => {
  expect(parameterCount(baseConfig(tokenizer))).toBeLessThan(1_000_000);
});

test('a perfect episode of the golden set fits the context with room to spare, and a turn fits its limit', async () => {
  const tasks = readGolden();
  const episodes = (await play(supportDesk, expert(tasks), tasks)).flat();
  for (const { messages } of episodes) {
    expect(codec.encode(messages, [], { generate: false }).length).toBeLessThan(supportDesk.limits.tokens - 40);
    for (const message of messages.filter(({ role }) => role === 'assistant')) {
      expect(codec.encode([message], [], { generate: false }).length).toBeLessThan(supportDesk.limits.tokensPerTurn);
    }
  }
  expect(supportDesk.limits.tokens).toBeLessThanOrEqual(shape.context);
});

test('an example is the conversation as the template renders it, shifted by one', () => {
  for (const messages of lines.slice(0, 50)) {
    const { datum } = datumOf(codec, messages);
    const whole = codec.encode(messages, [], { generate: false });
    expect([datum.tokens[0], ...datum.targets]).toEqual([...whole]);
    expect(datum.tokens).toEqual(whole.slice(0, -1));
  }
});

test('full weight is on what the agent wrote and on the end of its turns, and on nothing else', () => {
  const messages: Message[] = [
    { role: 'user', content: 'Where is 4821?' },
    { role: 'assistant', content: 'It is shipped.' },
  ];
  const { datum, mass } = datumOf(codec, messages);
  const weights = Array.from(datum.weights!);
  const written = Array.from(datum.targets).filter((_, i) => weights[i] === 1);
  expect(tokenizer.decode(written, { skipSpecial: false })).toBe('It is shipped.<|im_end|>');
  expect(mass).toBeCloseTo(written.length + schedule.heardWeight * (weights.length - written.length), 6);
});

test('what the model writes for a tool call is what the template renders of it', () => {
  const call = '<tool_call>{"name":"find_order","arguments":{"order":"4821"}}</tool_call>';
  const { message, malformed } = codec.decode(tokenizer.encode(call));
  expect(malformed).toBeUndefined();
  const rendered = codec.encode([message], [], { generate: false });
  expect(tokenizer.decode(rendered, { skipSpecial: false })).toBe(`<|im_start|>assistant\n${call}<|im_end|>`);
});

test('digits are tokens of their own, so that numbers can be copied', () => {
  const order = tokenizer.encodePlain('order 4821').slice(-4);
  expect(order.map((token) => tokenizer.decode([token]))).toEqual(['4', '8', '2', '1']);
});

test('the learning rate rises to its height and falls to a tenth', () => {
  expect(learningRate(0, 1000)).toBeCloseTo(schedule.learningRate / schedule.warmupSteps, 9);
  expect(learningRate(schedule.warmupSteps, 1000)).toBeCloseTo(schedule.learningRate, 9);
  expect(learningRate(1000, 1000)).toBeCloseTo(schedule.learningRate / 10, 9);
});
