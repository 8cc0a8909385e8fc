/**
 * A player that knows the policy: it makes the plan's moves in order. It is the gold check of the grader (it must get full
 * marks everywhere), the source of demonstrations, and what a perfect agent's score looks like.
 */
import { type AssistantMessage, type Player, type Random, random, type Task } from 'pawl';
import { type Move, plan } from './policy.ts';
import { sayAsk, sayEnding } from './replies.ts';
import type { DeskData } from './tasks.ts';

export function expert(tasks: readonly Task<DeskData>[]): Player {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  return async (conversations) =>
    conversations.map(({ task: id, turn }) => {
      const task = byId.get(id);
      if (task === undefined) return { kind: 'failed', detail: `The expert was not told about task ${id}.` };
      const move = plan(task.data)[turn];
      if (move === undefined)
        return { kind: 'failed', detail: `The expert's plan for ${id} ended before turn ${turn}.` };
      const message = moveMessage(move, turn, random('expert', id, turn));
      return { kind: 'said', message, finish: 'stop' };
    });
}

/** A move as the agent's message. */
export function moveMessage(move: Move, turn: number, r: Random): AssistantMessage {
  switch (move.kind) {
    case 'ask':
      return { role: 'assistant', content: sayAsk(r) };
    case 'call':
      return {
        role: 'assistant',
        content: null,
        tool_calls: [
          {
            id: `call_${turn}_0`,
            type: 'function',
            function: { name: move.tool, arguments: JSON.stringify(move.args) },
          },
        ],
      };
    case 'reply':
      return { role: 'assistant', content: sayEnding(move.ending, r) };
    default:
      return move satisfies never;
  }
}
