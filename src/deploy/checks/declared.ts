/** Checks that an agent's file declares besides those that every rollout has: their settings. */
import { z } from 'zod';
import { parseExpression } from '../expression.ts';

/** What the checks of every rollout are called, and what is measured in shadow. */
const taken = ['ratio', 'errors', 'latency', 'outcome', 'slice', 'feedback', 'drift', 'shadow'];

const common = {
  name: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,39}$/, 'lower-case letters, digits and - only, at most 40')
    .refine((name) => !taken.includes(name), 'is the name of a check that every rollout has')
    .describe('What it is called in reasons.'),
  ratio: z
    .number()
    .min(1)
    .default(1.5)
    .describe(
      'Tolerated: up to so many times the baseline’s figure where lower is better, down to the baseline’s divided by it where higher is.',
    ),
  better: z.enum(['lower', 'higher']).default('lower').describe('Which way is better.'),
  needed: z.boolean().default(true).describe('Whether a step waits for it while it has found nothing.'),
};

export const signalsCheck = z.strictObject({
  ...common,
  signals: z
    .string()
    .superRefine((text, context) => {
      const parsed = parseExpression(text);
      if ('problem' in parsed) context.addIssue({ code: 'custom', message: `the expression ${parsed.problem}` });
    })
    .describe(
      'An expression over the signals of a conversation: an outcome’s name, feedback, what users did; + - * / and comparisons, min and max.',
    ),
});
export type SignalsCheck = Readonly<z.output<typeof signalsCheck>>;

export const prometheusCheck = z.strictObject({
  ...common,
  prometheus: z
    .url({ protocol: /^https?$/ })
    .max(2048)
    .describe('Address of a Prometheus server, or of what speaks its API.'),
  query: z
    .string()
    .min(1)
    .max(4096)
    .refine((query) => query.includes('$release'), 'must hold $release, which is each release’s name in turn')
    .describe('PromQL with $release, and $agent where it is needed; its series are added up.'),
  sustainedSeconds: z.number().min(60).max(86_400).default(1800).meta({
    unit: 'seconds',
    description: 'So long the limit must have been passed without a break.',
  }),
  everySeconds: z.number().min(5).max(3600).default(150).meta({
    unit: 'seconds',
    description: 'How far apart the points are that are compared; the query should look back no further.',
  }),
});
export type PrometheusCheck = Readonly<z.output<typeof prometheusCheck>>;

export type DeclaredCheck = SignalsCheck | PrometheusCheck;

export const declaredChecks = z
  .array(z.union([signalsCheck, prometheusCheck]))
  .max(20)
  .default([])
  .refine((checks) => new Set(checks.map(({ name }) => name)).size === checks.length, 'must have different names')
  .describe('Further checks: what else must not get worse, by signals of users or by a Prometheus query.');
