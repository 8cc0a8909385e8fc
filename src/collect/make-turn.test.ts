import { describe, expect, test } from 'vitest';
import { bytes, chat, chatAnswer, exchange } from './fixtures/exchange.ts';
import { makeAttachment, makeSignal, makeTurn } from './make-turn.ts';
import { hashedId } from './person.ts';
import { createRules } from './redact/rules.ts';
import { piiSettings } from './redact/settings.ts';
import { createThreader } from './thread.ts';

const context = () => ({ threader: createThreader({ secret: 's' }), secret: 's', now: 0, newId: () => 'new' });

describe('a turn made from an exchange', () => {
  test('has its trajectory, a key for the next turn, and safe ids everywhere', () => {
    const ids = { user: 'bob@example.com', safety_identifier: 'bob-17' };
    const body = { model: 'm', ...ids, messages: [{ role: 'user', content: 'Hi' }] };
    const { turn } = makeTurn(
      exchange({
        user: 'bob@example.com',
        keys: ['order:17', 'mail:bob@example.com'],
        requestBody: bytes(JSON.stringify(body)),
      }),
      context(),
    );
    expect(turn.trajectory).toBe('new');
    expect(turn.threadKey).toMatch(/^[\w-]{22}$/);
    expect(turn.user).toBe(hashedId('bob@example.com', 's'));
    expect(turn.request.user).toBe(turn.user);
    expect(turn.request.safety_identifier).toBe(hashedId('bob-17', 's'));
    expect(turn.redactions).toEqual({}); // an id is hashed, not redacted
    expect(turn.keys).toEqual(['order:17', hashedId('mail:bob@example.com', 's')]);
    expect(JSON.stringify(turn)).not.toContain('bob');
  });

  test('has its names read by the rules of its own agent, whatever another agent lets stand', () => {
    const named = () => exchange({ release: 'local/BX-1234', requestedModel: 'BX-1234' });
    const recognizers = [{ kind: 'badge', pattern: 'BX-\\d{4}' }];
    const ofAgent = (more: object) => ({
      ...context(),
      rules: createRules({ settings: piiSettings.parse({ recognizers, ...more }) }),
    });
    expect(makeTurn(named(), context()).turn.release).toBe('local/BX-1234');
    expect(makeTurn(named(), ofAgent({})).turn.release).toBe('local/[BADGE_1]');
    const { turn, contentDropped } = makeTurn(named(), ofAgent({ policy: { badge: 'drop' } }));
    expect(contentDropped).toBe(true);
    expect(JSON.stringify(turn)).not.toContain('BX-1234');
  });

  test('says which client key it came with, which walls and caps per key go by', () => {
    const clientKey = '01890000-0000-4000-8000-000000000002';
    expect(makeTurn(exchange({ clientKey }), context()).turn.clientKey).toBe(clientKey);
  });

  const withTokens = (content: string) =>
    exchange({
      requestBody: bytes(JSON.stringify({ messages: [{ role: 'user', content }] })),
      responseChunks: [
        bytes(
          JSON.stringify({
            ...chatAnswer('Hi'),
            prompt_token_ids: [1, 2],
            choices: [
              {
                index: 0,
                message: { role: 'assistant', content: 'Hi' },
                finish_reason: 'stop',
                token_ids: [3],
                logprobs: { content: [{ token: 'Hi', logprob: -0.5 }] },
              },
            ],
          }),
        ),
      ],
    });

  test('keeps exact token ids when nothing was replaced', () => {
    const made = makeTurn(withTokens('Hello'), context());
    expect(made.turn.promptTokenIds).toEqual([1, 2]);
    expect(made.turn.choices[0]).toMatchObject({ tokenIds: [3], logprobs: [-0.5] });
    expect(made.tokensDropped).toBe(false);
  });

  test('loses its token ids and logprobs as soon as its text was redacted, since they spell it out', () => {
    const made = makeTurn(withTokens('I am bob@example.com'), context());
    expect(made.turn.promptTokenIds).toBeUndefined();
    expect(made.turn.choices).toEqual([
      { index: 0, message: { role: 'assistant', content: 'Hi' }, finishReason: 'stop' },
    ]);
    expect(made.tokensDropped).toBe(true);
    expect(made.turn.redactions).toEqual({ email: 1 });
  });

  test('is kept without its content when redaction fails', () => {
    const broken = () => {
      throw new RangeError('secret words');
    };
    const made = makeTurn(chat([{ role: 'user', content: 'Private' }], 'Very private'), {
      ...context(),
      redaction: broken,
    });
    expect(made.contentDropped).toBe(true);
    expect(made.turn).toMatchObject({ status: 'ok', request: {}, choices: [], promptTokens: 9 });
    expect(JSON.stringify(made.turn)).not.toMatch(/rivate|secret words/);
  });

  test('has a redacted error', () => {
    const { turn } = makeTurn(exchange({ status: 'error', error: 'no account bob@example.com' }), context());
    expect(turn.error).toBe('no account [EMAIL_1]');
  });
});

test('signals and attachments about one raw id meet under the same stored id', () => {
  const raw = 'card:4111111111111111';
  const attachment = makeAttachment({ agent: 'a', key: raw, trajectory: 't', turn: null, at: 0 }, 's');
  const { signal } = makeSignal(
    {
      id: 'x',
      identity: `outcome:${raw}`,
      agent: 'a',
      target: { kind: 'key', id: raw },
      kind: 'outcome',
      name: 'resolved',
      value: 1,
      unit: null,
      key: null,
      user: null,
      comment: 'said bob@example.com',
      correction: null,
      at: 0,
      receivedAt: 0,
    },
    's',
  );
  expect(signal.target.id).toBe(attachment.key);
  expect(signal.comment).toBe('said [EMAIL_1]');
  expect(JSON.stringify([attachment, signal])).not.toContain('4111');
});
