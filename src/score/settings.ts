/** When an agent's conversations are scored without anybody asking. */
import { z } from 'zod';

export const scoreSettings = z.strictObject({
  everyMinutes: z
    .number()
    .min(1)
    .max(10_080)
    .nullable()
    .default(60)
    .meta({ unit: 'minutes', description: 'A worker scores what is new so often; null: only when asked.' }),
  lookBackDays: z.number().min(0.01).max(366).default(7).meta({
    unit: 'days',
    description:
      'How far back it looks for conversations that are new; older ones are scored again when something is said about them.',
  }),
});
