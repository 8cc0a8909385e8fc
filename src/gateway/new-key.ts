/** What a client key is made from, whether over /api or at the command line. */
import { z } from 'zod';
import { origins } from '../collect/trajectory.ts';
import { scopes, usualScopes } from '../store/keys.ts';

const wall = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/, 'lower-case letters, digits and _ . - only, at most 63')
  .nullable()
  .default(null);

export const newKey = z.strictObject({
  /** What the key is for, in the words of whoever makes it. */
  name: z
    .string()
    .trim()
    .min(1)
    .max(100)
    .regex(/^\P{Cc}*$/u, 'must not hold control characters'),
  agent: z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/, 'lower-case letters, digits and _ . - only, at most 63'),
  origin: z.enum(origins).default('production'),
  /** What it may be used for. */
  scopes: z
    .array(z.enum(scopes))
    .min(1)
    .transform((given) => scopes.filter((scope) => given.includes(scope)))
    .default([...usualScopes]),
  /** Requests per minute; null is no limit. */
  rateLimit: z.int().min(1).max(10_000_000).nullable().default(null),
  /** Where its conversations are kept, and whose they are. */
  region: wall,
  tenant: wall,
});
