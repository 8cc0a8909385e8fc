/**
 * A conversation as a judge reads it: every message once, in order, each a block of its own, so that no message can pass itself off
 * as another's. What the model thought is left out: it is judged by what it said and did. Pure.
 */
import { argumentsText, type ToolCall } from '../collect/message.ts';
import { type Shown, timelineOf } from '../collect/timeline.ts';
import type { Turn } from '../collect/turn.ts';
import type { Block } from './ask.ts';
import { inOrder, type Measured, unmeasured } from './scorer.ts';

/** Of every turn what was added to the request, and the answer that the agent acted on. */
export function messagesOf(turns: readonly Turn[]): Shown[] {
  return timelineOf(inOrder(turns)).steps.flatMap(({ news, answers }) => [
    ...news,
    ...answers.slice(0, 1).map(({ message }) => ({ ...message, role: 'assistant' })),
  ]);
}

const callText = (call: ToolCall): string => `calls ${call.name ?? 'a tool without a name'}(${argumentsText(call)})`;

export const saidBy = ({ text, toolCalls }: Shown): string =>
  [text, ...toolCalls.map(callText)].filter((line) => line !== '').join('\n');

export const transcriptOf = (turns: readonly Turn[]): Block[] =>
  messagesOf(turns).map((message, i) => ({
    name: [`message ${i + 1}`, message.role, ...(message.role === 'tool' ? [message.toolName ?? ''] : [])].join(' '),
    text: saidBy(message),
  }));

/** What needs no judge: nobody answered, or the model answered with nothing, which is worth nothing. Otherwise null. */
export function withoutAnswer(turns: readonly Turn[]): Measured | null {
  const answered = turns.filter(({ choices }) => choices.length > 0);
  if (answered.length === 0) return unmeasured('there is no answer');
  const isSaid = messagesOf(answered).some((message) => message.role === 'assistant' && saidBy(message).trim() !== '');
  return isSaid ? null : { value: 0, reason: 'the assistant said and did nothing', turns: new Map() };
}
