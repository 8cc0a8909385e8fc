/**
 * A golden case over HTTP: a conversation up to the agent's turn, and what its answer must be like. One line of a suite's file:
 *
 *   {"id": "late-parcel", "type": "refund",
 *    "messages": [{"role": "user", "content": "Order 4711 is three weeks late. I want my money back."}],
 *    "tools": [{"type": "function", "function": {"name": "lookup", "parameters": {…}}}],
 *    "expect": {"tool": {"name": "lookup", "arguments": {"order": "4711"}}, "score": {"part": "tools", "min": 0.8}}}
 *
 * `expect` names graders (grade.ts); all of them must hold. `type` groups cases in the report.
 */
import { z } from 'zod';
import { expectSchema } from './grade.ts';

const content = z.union([z.string(), z.array(z.looseObject({ type: z.string() })).max(1000)]);
const toolCall = z.strictObject({
  id: z.string().min(1).max(256),
  type: z.literal('function'),
  function: z.strictObject({ name: z.string().min(1).max(256), arguments: z.string() }),
});

const message = z.discriminatedUnion('role', [
  z.strictObject({ role: z.enum(['system', 'developer', 'user']), content, name: z.string().optional() }),
  z.strictObject({
    role: z.literal('assistant'),
    content: content.nullish(),
    tool_calls: z.array(toolCall).min(1).max(128).optional(),
  }),
  z.strictObject({ role: z.literal('tool'), tool_call_id: z.string().min(1).max(256), content }),
]);

const offeredTool = z.strictObject({
  type: z.literal('function'),
  function: z.strictObject({
    name: z.string().min(1).max(256),
    description: z.string().default(''),
    parameters: z.record(z.string(), z.unknown()).default({}),
    strict: z.boolean().optional(),
  }),
});

export const caseSchema = z.strictObject({
  id: z.string().min(1).max(200),
  /** Cases of one type are also compared by themselves: a model may not buy its mean by forgetting one. */
  type: z.string().min(1).max(100),
  /** In OpenAI's shape; the model writes the next one. */
  messages: z.array(message).min(1).max(1000),
  tools: z.array(offeredTool).min(1).max(128).optional(),
  expect: expectSchema,
});
export type Case = Readonly<z.infer<typeof caseSchema>>;
