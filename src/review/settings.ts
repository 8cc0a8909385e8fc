/** An agent's settings for review: how much of its traffic people look at, and how many of them. */
import { z } from 'zod';

export const reviewSettings = z.strictObject({
  share: z.number().min(0).max(1).default(0.02).meta({
    unit: 'share',
    description:
      'Share of scored conversations of a week that people look at: half at random, half where reward and feedback disagree most. 0: none.',
  }),
  reviewers: z
    .int()
    .min(1)
    .max(5)
    .default(1)
    .meta({ unit: 'people', description: 'How many have to label a conversation before it leaves the queue.' }),
});
export type ReviewSettings = Readonly<z.output<typeof reviewSettings>>;
