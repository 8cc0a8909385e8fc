/** An agent's settings for evaluating: by what its candidates are judged, and how strictly. */
import { z } from 'zod';
import { compatibilitySettings } from './compatibility.ts';
import { embeddingSettings } from './embed.ts';
import { gateSettings } from './gates/all.ts';
import type { MatchSettings } from './match.ts';

const counted = (unit: string) => ({ unit });
const points = counted('share, 0.1 is 10 points');

export const evaluateSettings = z.strictObject({
  golden: z
    .string()
    .min(1)
    .max(4096)
    .optional()
    .describe(
      'The suite: a JSONL file of cases ({ id, type, messages, tools?, expect }) or of tasks of the agent’s environment. Relative to the settings file.',
    ),
  broad: z
    .string()
    .min(1)
    .max(4096)
    .optional()
    .describe('Another suite, of what must not be forgotten. A fall there is named like the fall of a type of case.'),
  base: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe(
      'Name of the release from which drift is counted too, beside the baseline. Without it: the first in the line of the candidate’s parents.',
    ),
  perturbed: z
    .int()
    .min(0)
    .max(10_000)
    .default(0)
    .meta({
      ...counted('cases'),
      description:
        'How many cases of the suite are also played said differently (casing, typos, politeness, an aside, the order of tools).',
    }),
  rubric: z
    .string()
    .min(1)
    .max(4096)
    .optional()
    .describe(
      'A text file that answers are judged by; answers that copy its words are caught by the gate rubric-words.',
    ),
  attempts: z
    .int()
    .min(1)
    .max(64)
    .default(1)
    .meta({ ...counted('attempts'), description: 'Attempts at each case, by the baseline and by the candidate.' }),
  temperature: z.number().min(0).max(2).default(1).describe('Sampling temperature while the suite is played.'),
  maxTokens: z
    .int()
    .min(1)
    .max(1_000_000)
    .optional()
    .meta({
      ...counted('tokens'),
      description: 'Most tokens of one answer to a case; without it the model’s own limit holds.',
    }),
  improvement: z
    .number()
    .min(0)
    .max(1)
    .default(0)
    .meta({ ...points, description: 'By how much the candidate must be better for a pass.' }),
  typeMargin: z
    .number()
    .min(0)
    .max(1)
    .default(0.1)
    .meta({ ...points, description: 'How far one type of case may fall before a person has to look.' }),
  gates: gateSettings
    .default(() => gateSettings.parse({}))
    .describe('Limits of the gates that look for drift and for tricks; null leaves one out.'),
  embeddings: embeddingSettings
    .optional()
    .describe('Who says how alike answers are, for the gate on diversity; without it words are counted.'),
  compatibility: compatibilitySettings
    .optional()
    .describe(
      'What the server must be able to do for this agent; where set, every evaluation checks it of the candidate.',
    ),
  timeoutSeconds: z
    .number()
    .positive()
    .max(3600)
    .default(120)
    .meta({
      ...counted('seconds'),
      description:
        'Time for one answer, its retries included, and again for grading it; later it counts as not measured.',
    }),
  concurrency: z
    .int()
    .min(1)
    .max(256)
    .default(8)
    .meta({ ...counted('requests'), description: 'Answers that are asked for at the same time.' }),
});

export type EvaluateSettings = Readonly<z.output<typeof evaluateSettings>>;

export const verdictSettings = ({ improvement, typeMargin, gates }: EvaluateSettings): MatchSettings => ({
  improvement,
  typeMargin,
  gates,
});
