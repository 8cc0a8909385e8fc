import { describe, expect, it } from 'vitest';
import type { Episode } from '../simulate/episode.ts';
import type { Message } from '../simulate/message.ts';
import { keepEvery, keptOf } from './kept-episodes.ts';

const turn = { tokens: null, finish: 'stop', steps: [], reward: 0.5, parts: {}, reasons: ['polite'] } as const;
const said: readonly Message[] = [
  { role: 'user', content: 'Write to ann@example.com, please.' },
  {
    role: 'assistant',
    content: null,
    reasoning_content: 'ann@example.com it is',
    tool_calls: [{ id: 'c', type: 'function', function: { name: 'mail', arguments: '{"to":"ann@example.com"}' } }],
  },
  { role: 'tool', tool_call_id: 'c', content: 'sent' },
];
const episode = (task: string, attempt: number, reward: number, more: Partial<Episode> = {}): Episode => ({
  ...{ id: `${task}:${attempt}`, environment: 'desk', task, type: 'mail', split: 'train', seed: 1, attempt },
  ...{ messages: said, turns: [turn], reward, success: reward > 0.5, parts: {}, reasons: ['sent'], outcome: 'done' },
  ...{ detail: '', counts: { toolCalls: 1, mistakes: 0, contextTokens: 9, completionTokens: 3 }, milliseconds: 1 },
  ...more,
});

describe('what is kept of the episodes of a step', () => {
  it('is of the task whose attempts differ most: the best two and the worst two, the best first', () => {
    const same = [0, 1, 2].map((n) => episode('same', n, 0.5));
    const different = [0.2, 0.9, 0.4, 0.1, 0.8, 0.9].map((reward, n) => episode('different', n, reward));
    const kept = keptOf([same, different, []]);
    expect(kept.map(({ task, attempt, reward }) => [task, attempt, reward])).toEqual([
      ['different', 1, 0.9],
      ['different', 5, 0.9],
      ['different', 0, 0.2],
      ['different', 3, 0.1],
    ]);
    expect(keptOf([same])).toHaveLength(3);
    expect(keptOf([])).toEqual([]);
    expect(keptOf([[]])).toEqual([]);
  });

  it('is what was said, thought, called and earned, with the same placeholder for the same address', () => {
    const [kept] = keptOf([[episode('a', 0, 1)]]);
    expect(kept).toMatchObject({ task: 'a', taskType: 'mail', success: true, outcome: 'done', reasons: ['sent'] });
    expect(kept!.messages).toEqual([
      { role: 'user', text: 'Write to [EMAIL_1], please.' },
      {
        ...{ role: 'assistant', text: '', reasoning: '[EMAIL_1] it is', reward: 0.5, reasons: ['polite'] },
        calls: [{ name: 'mail', input: '{"to":"[EMAIL_1]"}' }],
      },
      { role: 'tool', text: 'sent' },
    ]);
  });

  it('says why an attempt ended early, cuts what is long, and counts what is left out', () => {
    const messages = Array.from({ length: 70 }, (): Message => ({ role: 'user', content: 'a '.repeat(4_000) }));
    const [kept] = keptOf([[episode('a', 0, 0, { messages, turns: [], outcome: 'limit', detail: 'out of time' })]]);
    expect(kept).toMatchObject({ outcome: 'limit', reasons: ['out of time', 'sent'], leftOut: 10 });
    expect(kept!.messages).toHaveLength(60);
    expect(kept!.messages[0]!.text.endsWith(' … 4000 more')).toBe(true);
    expect(kept!.messages[0]!.text.length).toBeLessThan(4_020);
  });

  it('is of every step of a short run and of about two hundred of a long one', () => {
    expect([1, 73, 200, 399, 400, 10_000].map(keepEvery)).toEqual([1, 1, 1, 1, 2, 50]);
  });
});
