import { expect, test } from 'vitest';
import { exchange } from './fixtures/exchange.ts';
import { makeTurn } from './make-turn.ts';
import { createThreader } from './thread.ts';
import { exchangeOf, type TurnInput, type Understood } from './turn-input.ts';

const { requestBody: _, responseChunks: __, responseTruncated: ___, requestedModel: ____, ...facts } = exchange();
const content: Understood = {
  model: 'qwen3',
  request: { model: 'qwen3', messages: [{ role: 'user', content: 'I am bob@example.com' }] },
  choices: [
    { index: 0, message: { role: 'assistant', content: 'Hi' }, finishReason: 'stop', tokenIds: [3], logprobs: [-0.5] },
  ],
  promptTokens: 9,
  completionTokens: 1,
  reasoningTokens: null,
  usage: { prompt_tokens: 9 },
};
const make = (input: TurnInput) =>
  makeTurn(exchangeOf(input), { threader: createThreader({ secret: 's' }), secret: 's', now: 0, newId: () => 'new' });

test('what a door has read becomes a turn like any other: threaded, fitted and redacted', () => {
  const { turn, tokensDropped } = make({ ...facts, content });
  expect(turn).toMatchObject({
    id: facts.id,
    trajectory: 'new',
    model: 'qwen3',
    status: 'ok',
    request: { messages: [{ role: 'user', content: 'I am [EMAIL_1]' }] },
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finishReason: 'stop' }],
    promptTokens: 9,
    redactions: { email: 1 },
  });
  expect(turn.threadKey).not.toBeNull();
  expect(tokensDropped).toBe(true); // they spell the address out
});

test('exact tokens of what needed no redaction are kept', () => {
  const harmless = { ...content, request: { messages: [] }, promptTokenIds: [1, 2] };
  expect(make({ ...facts, content: harmless }).turn).toMatchObject({
    promptTokenIds: [1, 2],
    choices: [{ tokenIds: [3], logprobs: [-0.5] }],
  });
});

test('a door that let odd things through does no harm', () => {
  const odd = {
    ...content,
    request: 'none',
    choices: [7, { index: 'x', message: null }],
    promptTokens: 'many',
    usage: [],
  };
  const { turn, contentDropped } = make({ ...facts, content: odd as unknown as Understood });
  expect(contentDropped).toBe(false);
  expect(turn).toMatchObject({ request: {}, choices: [{ index: 0, message: {}, finishReason: null }], usage: null });
  expect(turn.promptTokens).toBeNull();
});

test('an exchange is handed on as it is', () => {
  const given = exchange();
  expect(exchangeOf(given)).toBe(given);
});
