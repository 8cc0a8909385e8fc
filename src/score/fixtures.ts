/** Conversations for tests of scoring and curating: every field set, so that a test names only what it is about. */
import type { Trajectory } from '../collect/trajectory.ts';
import type { Turn } from '../collect/turn.ts';
import { noon, turn } from '../store/fixtures.ts';
import { feedback } from './feedback.ts';
import { outcome } from './outcome.ts';
import { toolUse } from './tool-use.ts';
import { weighted } from './weighted.ts';

/** A reward that asks nobody. */
export const deskReward = weighted({
  resolved: [0.5, outcome('resolved')],
  tools: [0.3, toolUse()],
  feedback: [0.2, feedback()],
});

export const trajectory = (fields: Partial<Trajectory> = {}): Trajectory => ({
  id: 'conversation-1',
  agent: 'desk',
  user: 'ann',
  origin: 'production',
  consent: 'given',
  startedAt: new Date(noon),
  endedAt: new Date(noon + 10_000),
  turns: 2,
  errors: 0,
  promptTokens: 24,
  completionTokens: 8,
  latencyMs: 500,
  release: 'base',
  ...fields,
});

export const orderTool = {
  type: 'function',
  function: {
    name: 'get_order',
    description: 'Reads an order.',
    parameters: {
      type: 'object',
      properties: { id: { type: 'integer' } },
      required: ['id'],
      additionalProperties: false,
    },
  },
};

export type Said = {
  /** What the model answers with: a text, or tool calls as [name, arguments as JSON text]. */
  readonly say: string | readonly (readonly [string, string])[];
  /** Results of those calls, in order; they go into the next request. */
  readonly results?: readonly string[];
};

/** The turns of a conversation: a question, then what the model said, call by call, each request repeating all before. */
export function converse(question: string, said: readonly Said[], fields: Partial<Turn> = {}): Turn[] {
  const startedAt = fields.startedAt ?? noon;
  const messages: Record<string, unknown>[] = [{ role: 'user', content: question }];
  return said.map(({ say, results = [] }, k) => {
    const calls =
      typeof say === 'string'
        ? null
        : say.map(([name, args], i) => ({
            id: `call_${k}_${i}`,
            type: 'function',
            function: { name, arguments: args },
          }));
    const message = calls
      ? { role: 'assistant', content: null, tool_calls: calls }
      : { role: 'assistant', content: say as string };
    const made = turn({
      ...fields,
      startedAt: startedAt + k * 1000,
      request: { model: 'small', messages: [...messages], tools: [orderTool] },
      choices: [{ index: 0, message, finishReason: calls ? 'tool_calls' : 'stop' }],
    });
    messages.push(message);
    for (const [i, content] of results.entries())
      messages.push({ role: 'tool', tool_call_id: `call_${k}_${i}`, content });
    return made;
  });
}
