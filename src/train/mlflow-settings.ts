/** Where runs are logged besides Pawl's own places: a server that speaks MLflow's REST API. */
import { z } from 'zod';

export const mlflowSettings = z.strictObject({
  url: z
    .url({ protocol: /^https?$/, error: 'an http or https address such as http://127.0.0.1:5000' })
    .refine((url) => !/^https?:\/\/[^/]*@/i.test(url), 'without a user and password: set user and token')
    .transform((url) => url.replace(/\/+$/, ''))
    .describe(
      'Address of an MLflow server, up to and without /api: runs of training are logged there too (docs/train.md).',
    ),
  experiment: z
    .string()
    .min(1)
    .max(500)
    .default('pawl')
    .describe('Name of the experiment that runs are logged in; it is made where it is not there.'),
  token: z
    .string()
    .min(1)
    .max(10_000)
    .optional()
    .describe('Sent to it as the bearer token; better in the environment.'),
  user: z
    .string()
    .min(1)
    .max(500)
    .regex(/^[^:]*$/, 'without a colon')
    .optional()
    .describe('For a server that asks for user and password: with it, the token is the password.'),
});
export type MlflowSettings = z.output<typeof mlflowSettings>;
