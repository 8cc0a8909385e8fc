/**
 * Feedback, outcomes and what users did with an answer, as clients send them, turned into signals. Pure: a parsed body in, a Signal out.
 *
 * Identity makes a signal idempotent: one vote per user and target; each event once per user and target; one value per
 * target and outcome name (or per `id` where the sender gives one). Sent again it replaces, it never adds.
 */
import { z } from 'zod';
import { type Attachment, type Signal, type SignalTarget, userEvents } from '../collect/signal.ts';
import { trajectoryId } from '../collect/trajectory.ts';
import { RequestError } from '../errors.ts';
import { clockErrorMs, earliestTime } from '../store/times.ts';

const text = (max: number) => z.string().max(max);
const target = {
  trajectory: trajectoryId.optional(),
  turn: z.uuid().optional(),
};
const when = z.union([z.iso.datetime({ offset: true }), z.number().int()]).optional();
const user = z.string().min(1).max(256).optional();

const feedbackBody = z
  .strictObject({
    ...target,
    vote: z.enum(['up', 'neutral', 'down']).optional(),
    score: z.number().min(0).max(1).optional(),
    comment: text(10_000).optional(),
    correction: text(100_000).optional(),
    user,
    at: when,
  })
  .refine((b) => b.vote === undefined || b.score === undefined, { message: 'give `vote` or `score`, not both' })
  .refine((b) => [b.vote, b.score, b.comment, b.correction].some((v) => v !== undefined), {
    message: 'needs at least one of vote, score, comment, correction',
  });

const outcomeBody = z.strictObject({
  ...target,
  key: z.string().min(1).max(256).optional(),
  name: z.string().regex(/^[a-z][a-z0-9_.-]{0,63}$/, 'lower-case letters, digits and _ . - only, at most 64'),
  value: z.union([z.number(), z.boolean()]),
  unit: text(32).optional(),
  id: z.string().min(1).max(128).optional(),
  user,
  at: when,
});

const eventBody = z
  .strictObject({ ...target, event: z.enum(userEvents), text: text(100_000).optional(), user, at: when })
  .refine((b) => b.text === undefined || b.event === 'edited', {
    message: '`text` belongs to `edited`: what it became',
  });

const attachBody = z.strictObject({ ...target, keys: z.array(z.string().min(1).max(256)).min(1).max(16) });

const votes = { up: 1, neutral: 0.5, down: 0 } as const;

type Context = {
  readonly id: string;
  readonly agent: string;
  /** Id of the client key. */
  readonly key: string;
  readonly user: string | null;
  readonly trajectory: string | null;
  readonly now: number;
};

function parse<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((i) => `${i.path.join('.') || 'body'}: ${i.message}`);
  throw new RequestError(400, 'invalid_body', problems.join('; '));
}

function targetOf(
  body: { trajectory?: string | undefined; turn?: string | undefined; key?: string | undefined },
  context: Context,
): SignalTarget {
  const given = (['trajectory', 'turn', 'key'] as const).filter((kind) => body[kind] !== undefined);
  if (given.length > 1)
    throw new RequestError(400, 'ambiguous_target', `Give one of ${given.join(', ')}, not several.`);
  const kind = given[0];
  if (kind !== undefined) return { kind, id: body[kind]! };
  if (context.trajectory !== null) return { kind: 'trajectory', id: context.trajectory };
  throw new RequestError(
    400,
    'missing_target',
    'Say what this is about: `trajectory`, `turn` (the x-pawl-turn header of the answer) or, for outcomes, `key`.',
  );
}

/** What is dated later than any clock's error explains would stand above everything that comes after it. */
function timeOf(at: string | number | undefined, now: number): number {
  if (at === undefined) return now;
  const time = typeof at === 'number' ? at : Date.parse(at);
  if (time >= earliestTime && time <= now + clockErrorMs) return time;
  throw new RequestError(
    400,
    'invalid_time',
    `at: ${at} is not between 2000 and a day from now. Give ISO 8601 such as 2026-01-31T14:00:00Z, or milliseconds (not seconds) since 1970.`,
  );
}

const identityOf = (...parts: readonly (string | null)[]) => JSON.stringify(parts);

export function feedbackSignal(body: unknown, context: Context): Signal {
  const parsed = parse(feedbackBody, body);
  const about = targetOf(parsed, context);
  const who = parsed.user ?? context.user;
  return {
    id: context.id,
    identity: identityOf('feedback', context.agent, about.kind, about.id, who),
    agent: context.agent,
    target: about,
    kind: 'feedback',
    name: 'vote',
    value: parsed.score ?? (parsed.vote === undefined ? null : votes[parsed.vote]),
    unit: null,
    user: who,
    key: context.key,
    comment: parsed.comment ?? null,
    correction: parsed.correction ?? null,
    at: timeOf(parsed.at, context.now),
    receivedAt: context.now,
  };
}

export function outcomeSignal(body: unknown, context: Context): Signal {
  const parsed = parse(outcomeBody, body);
  const about = targetOf(parsed, context);
  return {
    id: context.id,
    identity: identityOf('outcome', context.agent, about.kind, about.id, parsed.name, parsed.id ?? null),
    agent: context.agent,
    target: about,
    kind: 'outcome',
    name: parsed.name,
    value: Number(parsed.value),
    unit: parsed.unit ?? null,
    user: parsed.user ?? context.user,
    key: context.key,
    comment: null,
    correction: null,
    at: timeOf(parsed.at, context.now),
    receivedAt: context.now,
  };
}

/** An edit that says what the answer became is a correction of it. */
export function eventSignal(body: unknown, context: Context): Signal {
  const parsed = parse(eventBody, body);
  const about = targetOf(parsed, context);
  const who = parsed.user ?? context.user;
  return {
    id: context.id,
    identity: identityOf('event', context.agent, about.kind, about.id, who, parsed.event),
    agent: context.agent,
    target: about,
    kind: 'event',
    name: parsed.event,
    value: null,
    unit: null,
    user: who,
    key: context.key,
    comment: null,
    correction: parsed.text ?? null,
    at: timeOf(parsed.at, context.now),
    receivedAt: context.now,
  };
}

export function attachments(body: unknown, context: Context): Attachment[] {
  const parsed = parse(attachBody, body);
  const about = targetOf(parsed, context);
  return parsed.keys.map((key) => ({
    agent: context.agent,
    key,
    trajectory: about.kind === 'trajectory' ? about.id : null,
    turn: about.kind === 'turn' ? about.id : null,
    at: context.now,
    by: context.key,
  }));
}
