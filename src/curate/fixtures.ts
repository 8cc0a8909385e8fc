/** The formats of exports as they are documented, strictly: TRL's "Dataset formats and types", OpenAI's fine-tuning input. */
import { z } from 'zod';
import type { ExportFormat } from './export.ts';

const tool = z.strictObject({
  type: z.literal('function'),
  function: z.strictObject({
    name: z.string(),
    description: z.string(),
    parameters: z.record(z.string(), z.unknown()),
  }),
});
const said = z.strictObject({ role: z.enum(['system', 'user']), content: z.string() });

const trlAssistant = z.strictObject({
  role: z.literal('assistant'),
  content: z.string(),
  reasoning_content: z.string().optional(),
  tool_calls: z
    .array(
      z.strictObject({
        type: z.literal('function'),
        function: z.strictObject({ name: z.string(), arguments: z.record(z.string(), z.unknown()) }),
      }),
    )
    .min(1)
    .optional(),
});
const trlMessage = z.union([
  said,
  trlAssistant,
  z.strictObject({ role: z.literal('tool'), name: z.string(), content: z.string() }),
]);
const trlTools = { tools: z.array(tool).min(1).optional() };
const openAiAssistant = z.strictObject({
  role: z.literal('assistant'),
  content: z.string().nullable(),
  weight: z.union([z.literal(0), z.literal(1)]).optional(),
  tool_calls: z
    .array(
      z.strictObject({
        id: z.string(),
        type: z.literal('function'),
        function: z.strictObject({ name: z.string(), arguments: z.string() }),
      }),
    )
    .min(1)
    .optional(),
});
export const documented: Record<ExportFormat, z.ZodType> = {
  'trl-sft': z.strictObject({ messages: z.array(trlMessage).min(1), ...trlTools }),
  'trl-preference': z.strictObject({
    prompt: z.array(trlMessage).min(1),
    chosen: z.array(trlAssistant).length(1),
    rejected: z.array(trlAssistant).length(1),
    ...trlTools,
  }),
  'trl-prompts': z.strictObject({ prompt: z.array(trlMessage).min(1), ...trlTools }),
  'openai-chat': z.strictObject({
    messages: z
      .array(
        z.union([
          said,
          openAiAssistant,
          z.strictObject({ role: z.literal('tool'), tool_call_id: z.string(), content: z.string() }),
        ]),
      )
      .min(1),
    tools: z.array(tool).min(1).optional(),
  }),
};
