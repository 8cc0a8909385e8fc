import { describe, expect, it } from 'vitest';
import type { Endpoint } from '../collect/turn.ts';
import { makeRelease, type NewRelease, type ThinkingDialect } from '../deploy/release.ts';
import { releasedBody, releasedBytes } from './released-body.ts';
import { Scan } from './scan.ts';

const release = (more: Partial<NewRelease>) =>
  makeRelease({ agent: 'desk', name: 'v2', upstream: 'u', model: 'm2', ...more }, 0);
const asked = (
  body: object,
  more: Partial<NewRelease>,
  endpoint: Endpoint = 'chat',
  thinking: ThinkingDialect | null = null,
) => releasedBody({ model: 'desk', ...body }, release(more), { defaults: {}, thinking }, endpoint);
const user = { role: 'user', content: 'Hi' };

describe('a release’s prompt', () => {
  const replace = { prompt: { text: 'Be kind.', rule: 'replace' as const } };
  const before = { prompt: { text: 'Be kind.', rule: 'before' as const } };

  it('stands in place of the caller’s instructions, or before them', () => {
    const messages = [{ role: 'system', content: 'Be brief.' }, user];
    expect(asked({ messages }, replace).messages).toEqual([{ role: 'system', content: 'Be kind.' }, user]);
    expect(asked({ messages }, before).messages).toEqual([{ role: 'system', content: 'Be kind.\n\nBe brief.' }, user]);
    expect(asked({ messages: [user] }, before).messages).toEqual([{ role: 'system', content: 'Be kind.' }, user]);
  });

  it('stands where each wire format has its instructions, and nowhere where there is no place', () => {
    expect(asked({ input: 'Hi', instructions: 'Be brief.' }, before, 'responses').instructions).toBe(
      'Be kind.\n\nBe brief.',
    );
    expect(asked({ messages: [user], system: 'Be brief.' }, replace, 'messages').system).toBe('Be kind.');
    expect(asked({ input: 'Hi' }, replace, 'embeddings')).toEqual({ model: 'm2', input: 'Hi' });
  });
});

it('a prompt reaches a long conversation too, of which only the top level was read', () => {
  const messages = Array.from({ length: 50 }, (_, i) => ({
    role: i % 2 ? 'assistant' : 'user',
    content: `${i} ${'x'.repeat(400)}`,
  }));
  const bytes = Buffer.from(JSON.stringify({ model: 'desk', messages }));
  const scan = new Scan();
  scan.feed(bytes);
  const { body, modelSpans } = scan.read(bytes);
  const sent = releasedBytes(
    ...([bytes, body, modelSpans] as const),
    release({ prompt: { text: 'Be kind.', rule: 'before' } }),
    { defaults: {}, thinking: null },
    'chat',
  );
  expect(JSON.parse(sent.toString()).messages).toEqual([{ role: 'system', content: 'Be kind.' }, ...messages]);
});

it('a thinking budget is told in the server’s own words', () => {
  const told = (thinking: number, dialect: ThinkingDialect) => {
    const { model: _, ...fields } = asked({ chat_template_kwargs: { a: 1 } }, { thinking }, 'chat', dialect);
    return fields;
  };
  expect(told(512, 'vllm')).toEqual({
    chat_template_kwargs: { a: 1, enable_thinking: true },
    thinking_token_budget: 512,
  });
  expect(told(0, 'vllm')).toEqual({ chat_template_kwargs: { a: 1, enable_thinking: false } });
  expect(told(512, 'template').chat_template_kwargs).toEqual({ a: 1, enable_thinking: true, thinking_budget: 512 });
  expect(told(512, 'openrouter').reasoning).toEqual({ max_tokens: 512 });
  expect(told(512, 'anthropic').thinking).toEqual({ type: 'enabled', budget_tokens: 512 });
  expect(told(512, 'nim').nvext).toEqual({ max_thinking_tokens: 512 });
});

it('without either, every byte but the model’s name stays as the caller wrote it', () => {
  const bytes = Buffer.from('{"model":"desk", "seed": 12345678901234567890}');
  const sent = releasedBytes(
    bytes,
    { model: 'desk', seed: 1 },
    null,
    release({}),
    { defaults: {}, thinking: null },
    'chat',
  );
  expect(sent.toString()).toBe('{"model":"m2", "seed": 12345678901234567890}');
});
