/**
 * When an agent's loop turns by itself, what a turn may cost and what it does when something fails: the settings of the
 * agent's file. A loop turns by itself only where there is something to train from and something to judge a candidate by
 * (facts.ts); with `every: null, after: null` it turns only when a person says `pawl loop run`.
 */
import { z } from 'zod';

const periods = { hour: 3_600_000, day: 86_400_000, week: 604_800_000 } as const;
const units = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

const duration = z
  .string()
  .regex(/^[1-9]\d{0,4}[mhdw]$/, "'hour', 'day', 'week', a time such as '90m', '6h' or '3d', or null for never");

export const loopSettings = z.strictObject({
  every: z
    .union([z.enum(['hour', 'day', 'week']), duration])
    .nullable()
    .default('week')
    .describe(
      "A turn begins this often: 'hour', 'day', 'week', or a time such as '6h'; null: not by the clock. A time at which nothing new has come is left out.",
    ),
  after: z
    .strictObject({
      scored: z.int().min(1).max(1_000_000).default(500).meta({
        unit: 'trajectories',
        description: 'A turn also begins when so many new trajectories have a score.',
      }),
    })
    .nullable()
    .default({ scored: 500 })
    .describe('Evidence that is enough for a turn before its time; null: only the clock, or a person, begins one.'),
  budget: z
    .strictObject({
      hours: z
        .number()
        .positive()
        .max(10_000)
        .default(24)
        .meta({ unit: 'hours', description: 'Work of one turn; the time users try a candidate does not count.' }),
      tokens: z
        .int()
        .positive()
        .optional()
        .meta({ unit: 'tokens', description: 'Tokens that one turn may sample and learn from.' }),
      money: z.number().positive().optional().describe('What one turn may cost, by `train.moneyPerHour`.'),
    })
    .prefault({})
    .describe('What one turn may use up. It ends where it would use more.'),
  successWorth: z
    .number()
    .positive()
    .max(1e9)
    .optional()
    .describe(
      'What one more solved conversation is worth, in the money of `train.moneyPerHour`: what the loop’s return is told by.',
    ),
  retries: z.int().min(0).max(20).default(3).meta({
    unit: 'times',
    description:
      'A stage that fails is tried again so often, after 1, 2, 4 … minutes, at most an hour; then a person is asked.',
  }),
  seed: z
    .int()
    .min(0)
    .max(2 ** 31 - 1)
    .optional()
    .describe("Everything random in a turn follows from it. Without it: the turn's number."),
});
export type LoopSettings = Readonly<z.output<typeof loopSettings>>;

/** How often, in milliseconds; null: not by the clock. */
export function periodOf(every: LoopSettings['every']): number | null {
  if (every === null) return null;
  if (every in periods) return periods[every as keyof typeof periods];
  return Number(every.slice(0, -1)) * units[every.slice(-1) as keyof typeof units];
}
