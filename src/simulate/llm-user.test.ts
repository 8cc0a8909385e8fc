import { expect, test } from 'vitest';
import { llmUser, type UserBrief, userMessages } from './llm-user.ts';
import type { Conversation, Player } from './player.ts';

const brief: UserBrief = {
  persona: 'You are in a hurry.',
  goal: 'Cancel the order.',
  facts: { 'order number': '4821' },
  transcripts: [
    [
      { who: 'user', text: 'hey where is my stuff' },
      { who: 'agent', text: 'On its way.' },
    ],
  ],
  seed: 5,
};

test('the model is told persona, goal, facts and tone, with the roles turned around', () => {
  const messages = userMessages(brief, [
    { who: 'user', text: 'Cancel it.' },
    { who: 'agent', text: 'Which number?' },
  ]);
  const system = messages[0]!.content!;
  for (const part of ['in a hurry', 'Cancel the order', 'order number: 4821', 'Customer: hey where is my stuff']) {
    expect(system).toContain(part);
  }
  expect(messages.slice(2)).toEqual([
    { role: 'assistant', content: 'Cancel it.' },
    { role: 'user', content: 'Which number?' },
  ]);
});

test('BYE means leaving, anything else is said', async () => {
  const asked: Conversation[] = [];
  const answers = ['Cancel my order.', '4821', ' BYE. '];
  const player: Player = async (conversations) => {
    asked.push(...conversations);
    return [{ kind: 'said', message: { role: 'assistant', content: answers[asked.length - 1]! }, finish: 'stop' }];
  };
  const user = llmUser(brief, player);
  expect(await user.open()).toBe('Cancel my order.');
  expect(await user.answer([{ who: 'agent', text: 'Which?' }])).toBe('4821');
  expect(await user.answer([{ who: 'agent', text: 'Done.' }])).toBeNull();
  expect(asked.every(({ tools }) => tools.length === 0)).toBe(true);
});

test('a model that does not answer is an error for the episode to record', async () => {
  const user = llmUser(brief, async () => [{ kind: 'failed', detail: 'server down' }]);
  await expect(user.open()).rejects.toThrow('server down');
});

test('transcripts are bounded', () => {
  const long = Array.from({ length: 100 }, () => [{ who: 'user' as const, text: 'x'.repeat(500) }]);
  expect(userMessages({ ...brief, transcripts: long }, [])[0]!.content!.length).toBeLessThan(6000);
});
