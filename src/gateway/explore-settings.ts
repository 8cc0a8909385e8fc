/**
 * How much an agent's releases are asked beyond what users ask them. Two kinds of limits: what this gateway may do at once and
 * in a minute protects the server that users wait for; what may be asked in an hour and cost in a day is the agent's, counted
 * in the database for all gateways together.
 */
import { z } from 'zod';

const counted = (unit: string, description: string) => ({ unit, description });
const money = z.number().min(0).max(1e9);

export const exploreSettings = z
  .strictObject({
    share: z
      .number()
      .min(0)
      .max(1)
      .default(0)
      .describe('Share of chat requests to which further answers are asked for, after the user has theirs; 0 is none.'),
    temperatures: z
      .array(z.number().min(0).max(2))
      .min(1)
      .max(8)
      .default([0.7, 0.9, 1.1])
      .describe('One further answer is asked for at each of these temperatures.'),
    topP: z
      .array(z.number().gt(0).max(1))
      .max(8)
      .default([0.9, 0.95, 1])
      .describe(
        'Values of top_p, of which each further answer gets one by chance; an empty list leaves the request’s own.',
      ),
    maxTokens: z
      .int()
      .min(1)
      .max(1_000_000)
      .default(2048)
      .meta(counted('tokens', 'The longest further answer; a request that asks for less gets less.')),
    inFlight: z
      .int()
      .min(1)
      .max(256)
      .default(2)
      .meta(counted('calls', 'Further answers being waited for at once, in one gateway.')),
    perMinute: z
      .int()
      .min(1)
      .max(100_000)
      .default(30)
      .meta(counted('calls', 'Further answers asked for in one minute, by one gateway.')),
    perHour: z
      .int()
      .min(1)
      .max(1_000_000)
      .default(300)
      .meta(counted('calls', 'Further answers asked for in one hour, by all gateways together.')),
    whileBelow: z
      .int()
      .min(1)
      .max(100_000)
      .default(32)
      .meta(counted('requests', 'With this many users’ requests in flight a gateway is busy and explores nothing.')),
    price: z
      .strictObject({
        prompt: money.describe('For a million tokens of the prompt.'),
        completion: money.describe('For a million tokens of the answer.'),
      })
      .optional()
      .describe('What the upstream charges, in your currency; without it further answers are taken to cost nothing.'),
    moneyPerDay: money
      .optional()
      .describe('The most that further answers may cost in a day (UTC), in the currency of `price`.'),
  })
  .superRefine(({ price, moneyPerDay }, context) => {
    if ((price === undefined) === (moneyPerDay === undefined)) return;
    const [given, missing] = price === undefined ? ['moneyPerDay', 'price'] : ['price', 'moneyPerDay'];
    context.addIssue({ code: 'custom', path: [missing!], message: `is needed where ${given} is set` });
  });

export type ExploreSettings = Readonly<z.output<typeof exploreSettings>>;
