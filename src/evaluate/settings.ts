/** How an agent's candidates are judged: the settings of its file. */
import { z } from 'zod';

export const evaluateSettings = z.strictObject({
  golden: z
    .string()
    .min(1)
    .max(4096)
    .optional()
    .describe('JSONL file of cases that nothing is ever trained on: what a candidate is judged by.'),
  attempts: z.int().min(1).max(64).default(1).meta({ unit: 'attempts', description: 'Attempts at each case.' }),
  temperature: z.number().min(0).max(2).default(1).describe('At which both models answer.'),
  improvement: z.number().min(0).max(1).default(0).describe('By how much the candidate must be better, e.g. 0.1.'),
  typeMargin: z.number().min(0).max(1).default(0.1).describe('Fall of one task type that is tolerated.'),
  maxDrift: z
    .number()
    .positive()
    .optional()
    .meta({ unit: 'nats per token', description: 'How far the answers may be from the baseline’s way of answering.' }),
});
export type EvaluateSettings = Readonly<z.output<typeof evaluateSettings>>;
