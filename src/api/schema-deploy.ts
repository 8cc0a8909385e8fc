/** The shapes of /api/releases and /api/rollouts. */
import { isAbsolute } from 'node:path';
import { z } from '@hono/zod-openapi';
import { isReference } from '../artifacts/artifact.ts';
import { decisions } from '../deploy/decide.ts';
import { releaseAsked } from '../deploy/register.ts';
import { releaseSchema } from '../deploy/release.ts';
import { personMoves, phases, rolloutId } from '../deploy/rollout.ts';
import { compatibilitySchema } from '../evaluate/compatibility.ts';
import { agentName, limit, text, time } from './schema.ts';

const by = text(200)
  .optional()
  .openapi({ example: 'ann', description: 'Who does it; stands in the audit log. Without it: admin.' });
const reason = text(2000).optional().openapi({ description: 'Why; stands in the audit log.' });
const unfit = text(2000).optional().openapi({
  description:
    'Why it is let through though it does not fit its server, or nobody could tell; stands in the audit log. Without it, a release that never served is checked first.',
});
const whose = agentName.optional().openapi({ description: 'Whose it is; without it the first agent of the settings.' });

export const releaseShape = releaseSchema
  .omit({ createdAt: true })
  .extend({ createdAt: time, serving: z.boolean() })
  .openapi('Release', { description: 'What can answer an agent’s traffic. `serving`: it does.' });
export const releasesShape = z
  .object({ releases: z.array(releaseShape) })
  .openapi('Releases', { description: 'Newest first.' });
export const oneReleaseShape = z
  .object({
    release: releaseShape,
    parentName: z.string().nullable().openapi({ description: 'Name of the release it was made from.' }),
    compatibility: compatibilitySchema
      .nullable()
      .openapi({ description: 'Whether it fits the server it is for, as last checked; null: nobody has.' }),
    adapter: z
      .object({ state: z.enum(['loaded', 'not loaded', 'unknown']), sentence: z.string() })
      .nullable()
      .openapi({ description: 'Whether the server it is for has its adapter; null where it is no adapter.' }),
    card: z.string().openapi({ description: 'The model card, in Markdown.' }),
    cardYaml: z.string().openapi({ description: 'The same records, in YAML.' }),
  })
  .openapi('OneRelease');
export const servedShape = z
  .object({ release: releaseShape, changed: z.boolean() })
  .openapi('Served', { description: '`changed` is false where it served already, under the same names.' });

export const listQuery = z.strictObject({ agent: agentName.optional(), limit: limit(50) });
export const releaseParam = z.object({ name: releaseSchema.shape.name });
export const releaseQuery = z.strictObject({ agent: whose });
const isPlaced = (given: string | undefined) => given === undefined || isReference(given) || isAbsolute(given);
const place = 'the reference of an artifact, or a whole path on the machine that serves';
export const newReleaseBody = releaseAsked.extend({
  agent: whose,
  checkpoint: releaseAsked.shape.checkpoint.refine(isPlaced, place),
  adapter: releaseAsked.shape.adapter.refine(isPlaced, place),
  by,
});
export const serveBody = z.strictObject({
  agent: whose,
  by,
  reason,
  unfit,
  aliases: z.array(releaseSchema.shape.model).max(100).optional().openapi({
    description:
      'Model names, besides the agent’s own, under which clients get it. Without this they stay as they are.',
  }),
});

export const killBody = z.strictObject({
  agent: whose,
  to: releaseSchema.shape.name.optional().openapi({ description: 'What is to answer; without it the baseline.' }),
  by,
  reason,
  unfit,
});
export const killedShape = z
  .object({ agent: z.string(), release: z.string(), before: z.string(), aborted: z.string().nullable() })
  .openapi('Killed', { description: 'What answers now, what did before, and the rollout that was aborted.' });
export const reviveBody = z.strictObject({ agent: whose, by, reason });
export const revivedShape = z.object({ agent: z.string() }).openapi('Revived');
const who = {
  key: text(256).optional(),
  user: text(256).optional(),
  hashed: z.boolean().default(false).openapi({ description: 'Whether `user` is the hash that a list shows.' }),
};
const oneOf = { description: 'Give `key` (its id) or `user` (as the agent sends it), one of the two.' };
export const pinBody = z.strictObject({ agent: whose, ...who, by, unfit }).openapi(oneOf);
export const unpinBody = z.strictObject({ agent: whose, ...who, by }).openapi(oneOf);
export const pinShape = z
  .object({ agent: z.string(), kind: z.enum(['key', 'user']), value: z.string(), release: z.string().nullable() })
  .openapi('Pin', { description: 'Who gets which release whatever is rolled out; null: as everybody.' });

export const servingShape = z
  .object({
    agent: z.string(),
    release: z.string().nullable().openapi({ description: 'What answers where nothing else is said.' }),
    killed: z
      .object({ by: z.string(), reason: z.string(), at: time })
      .nullable()
      .openapi({ description: 'Who pulled the kill switch; null: it is not pulled.' }),
    pins: z.array(
      z.object({
        kind: z.enum(['key', 'user']),
        value: z.string().openapi({ description: 'Id of the key, or the hash of the user’s id.' }),
        release: z.string(),
        by: z.string(),
        at: time,
      }),
    ),
  })
  .openapi('Serving', { description: 'What answers an agent’s traffic, and who gets something else.' });

export const obeyedShape = z
  .object({ done: z.int(), ignored: z.int() })
  .openapi('Obeyed', { description: 'How many alerts did something, and how many did not.' });

export const rolloutShape = z
  .object({
    id: z.string(),
    agent: z.string(),
    /** Names of the releases. */
    baseline: z.string(),
    candidate: z.string(),
    report: z.string().nullable(),
    phase: z.enum(phases),
    step: z.int(),
    steps: z.array(z.number()),
    share: z.number().openapi({ description: 'Share of users that gets the candidate.' }),
    reasons: z.array(z.string()),
    createdAt: time,
    startedAt: time.nullable(),
    stepSince: time.nullable(),
    endedAt: time.nullable(),
  })
  .openapi('Rollout', { description: 'A release on its way to the users.' });
export const rolloutsShape = z
  .object({ rollouts: z.array(rolloutShape) })
  .openapi('Rollouts', { description: 'Newest first.' });
export const oneRolloutShape = z
  .object({
    rollout: rolloutShape,
    measurements: z
      .record(z.string(), z.unknown())
      .openapi({ description: 'What each check measured of the two releases, by the check’s name.' }),
    decision: z.object({
      kind: z.enum(decisions),
      reasons: z.array(z.string()),
      checks: z.array(
        z.object({
          name: z.string(),
          end: z.enum(['pass', 'fail', 'inconclusive', 'unmeasured']),
          needed: z.boolean(),
          reason: z.string(),
        }),
      ),
    }),
  })
  .openapi('OneRollout', { description: 'Where it is, what is measured now, and what follows from that.' });

export const rolloutParam = z.object({ id: rolloutId });
export const moveParam = rolloutParam.extend({ move: z.enum(personMoves) });
export const startBody = z.strictObject({
  agent: whose,
  candidate: releaseSchema.shape.name,
  report: text(256).optional(),
  id: rolloutId.optional(),
  forced: text(2000).optional().openapi({
    description: 'Why it begins whatever the evaluation says; without it, the evaluation decides.',
  }),
  unfit,
  by,
});
export const moveBody = z.strictObject({ by, reason, unfit });
