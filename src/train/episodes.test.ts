import { describe, expect, it } from 'vitest';
import type { ChatCodec } from '../simulate/engine-player.ts';
import type { Episode } from '../simulate/episode.ts';
import type { Message } from '../simulate/message.ts';
import { sequences } from './datum.ts';
import { attemptFrom, turnsFromMessages } from './episodes.ts';

const tokens = { prompt: [1, 2], completion: [3, 9], logprobs: [-0.5, -0.1], rawLogprobs: [-0.7, -0.2], version: 4 };
const episode: Episode = {
  id: 'e',
  environment: 'toy',
  task: 't',
  type: 'refund',
  split: 'train',
  seed: 7,
  attempt: 0,
  messages: [{ role: 'user', content: 'hi' }],
  turns: [{ tokens, finish: 'stop', steps: [], reward: 0.25, parts: {}, reasons: [] }],
  reward: 1,
  success: true,
  parts: {},
  reasons: [],
  outcome: 'done',
  detail: '',
  counts: { toolCalls: 0, mistakes: 0, contextTokens: 4, completionTokens: 2 },
  milliseconds: 1,
};

describe('an episode as an attempt', () => {
  it('keeps the exact tokens, the plain model’s logprobs, the version and the rewards', () => {
    expect(attemptFrom(episode)).toMatchObject({
      task: 't',
      taskType: 'refund',
      reward: 1,
      version: 4,
      turns: [{ prompt: [1, 2], completion: [3, 9], logprobs: [-0.7, -0.2], reward: 0.25 }],
    });
  });

  it('is none when the environment crashed or nobody answered: no policy is to blame', () => {
    for (const outcome of ['crashed', 'failed'] as const) expect(attemptFrom({ ...episode, outcome })).toBeNull();
    for (const outcome of ['limit', 'malformed'] as const) expect(attemptFrom({ ...episode, outcome })).not.toBeNull();
  });

  it('is refused without tokens, and when two versions of the weights wrote it', () => {
    const turn = episode.turns[0]!;
    expect(() => attemptFrom({ ...episode, turns: [{ ...turn, tokens: null }] })).toThrow(/no exact tokens/);
    expect(() => attemptFrom({ ...episode, turns: [turn, { ...turn, tokens: { ...tokens, version: 5 } }] })).toThrow(
      /weights 4 and 5/,
    );
  });
});

/** One token per character, a role's token before each message, 0 after. */
const codec: ChatCodec = {
  encode: (messages, _tools, { generate }) => [
    ...messages.flatMap((m) => [role(m.role), ...[...(m.content ?? '')].map((c) => c.charCodeAt(0)), 0]),
    ...(generate ? [role('assistant')] : []),
  ],
  decode: () => ({ message: { role: 'assistant', content: '' } }),
  stopTokens: [0],
};
const role = (name: string): number => ({ system: 1, user: 2, assistant: 3, tool: 4 })[name]!;

describe('a conversation somebody wrote', () => {
  it('becomes turns whose prompts extend each other, with loss on the assistant’s words and their end only', () => {
    const messages: Message[] = [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b' },
      { role: 'user', content: 'c' },
      { role: 'assistant', content: 'd' },
    ];
    const turns = turnsFromMessages(codec, messages, []);
    expect(turns.map((t) => t.completion)).toEqual([
      [98, 0],
      [100, 0],
    ]);
    const all = sequences(turns);
    expect(all).toHaveLength(1);
    expect([...all[0]!.turns].map((t) => (t >= 0 ? 1 : 0))).toEqual([0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1]);
  });
});
