/** What was recorded or judged elsewhere comes in: conversations, and labels. And labels as they stand. */
import { createRoute, z } from '@hono/zod-openapi';
import { formats, sourceName } from '../collect/conversation.ts';
import { cutLines } from '../collect/cut-lines.ts';
import { importConversations } from '../collect/import.ts';
import { importLabels } from '../collect/import-labels.ts';
import { labelBody } from '../collect/label.ts';
import { typedUser } from '../collect/person.ts';
import { piiOfAgents } from '../collect/redact/settings.ts';
import { origins } from '../collect/trajectory.ts';
import type { Config } from '../config.ts';
import { listLabels } from '../store/labels.ts';
import type { Store } from '../store/postgres.ts';
import { body, createRouter, json, problem, refusals, security } from './declare.ts';
import { agentName, limit, time, userId } from './schema.ts';
import { knownAgent, oneAtATime } from './window.ts';

export type LabelParts = {
  readonly store: Store;
  readonly config: Pick<Config, 'agents' | 'pii'>;
  readonly secret: string;
};

/** Paths whose bodies may be as large as a file. */
export const isImport = (path: string): boolean => path === '/api/trajectories/import' || path === '/api/labels';

const count = z.int().min(0);
const taken = {
  bad: count,
  problems: z
    .array(z.object({ line: count, reason: z.string() }))
    .openapi({ description: 'The first of what was not taken, and why.' }),
};
const agent = agentName.optional().openapi({ description: 'Whose; without it, the first of the settings.' });

const importRoute = createRoute({
  method: 'post',
  path: '/api/trajectories/import',
  summary: 'Import conversations, one JSON object per line; what was imported before is left alone',
  security,
  request: {
    query: z.strictObject({
      agent,
      format: z.enum(formats).optional().openapi({ description: 'Of the lines; without it, told by each line.' }),
      origin: z.enum(origins).default('production'),
      source: sourceName
        .optional()
        .openapi({ description: 'What it is called where `curate.maxSourceShare` bounds one source.' }),
    }),
    body: { required: true, content: { 'application/x-ndjson': { schema: z.string() } } },
  },
  responses: {
    200: json(
      z
        .object({
          ...{ agent: z.string(), lines: count, conversations: count, turns: count, signals: count },
          known: count.openapi({ description: 'Turns and signals that were there before.' }),
          redactions: count,
          ...taken,
        })
        .openapi('ImportCounts'),
      'What came in.',
    ),
    404: problem('There is no such agent in the settings.'),
    409: problem('Another import of this agent is under way.'),
    ...refusals,
  },
});

const labelSchema = z
  .object({
    target: z.object({ kind: z.enum(['trajectory', 'turn']), id: z.string() }),
    reviewer: z.string().nullable().openapi({ description: 'Hash.' }),
    score: z.number(),
    parts: z.record(z.string(), z.number()),
    comment: z.string().nullable(),
    correction: z.string().nullable(),
    at: time,
  })
  .openapi('Label', { description: 'A reviewer’s newest word about a conversation or a turn.' });

const listRoute = createRoute({
  method: 'get',
  path: '/api/labels',
  summary: 'List labels, newest first',
  security,
  request: {
    query: z.strictObject({
      agent,
      reviewer: userId.optional(),
      hashed: z.enum(['true', 'false']).optional(),
      limit: limit(50),
    }),
  },
  responses: {
    200: json(z.object({ labels: z.array(labelSchema) }), 'The labels.'),
    404: problem('There is no such agent in the settings.'),
    ...refusals,
  },
});

const labelRoute = createRoute({
  method: 'post',
  path: '/api/labels',
  summary: 'Label conversations or turns; a reviewer’s newest label stands',
  security,
  request: {
    body: body(
      z.strictObject({
        agent,
        labels: z.array(z.strictObject(labelBody.shape)).min(1).max(10_000),
      }),
    ),
  },
  responses: {
    200: json(
      z
        .object({
          ...{ agent: z.string(), labels: count, written: count, unchanged: count },
          unknown: count.openapi({ description: 'About a conversation that is not recorded.' }),
          ...taken,
        })
        .openapi('LabelCounts'),
      'What came in.',
    ),
    404: problem('There is no such agent in the settings.'),
    ...refusals,
  },
});

async function* chunksOf(stream: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  if (stream !== null) yield* stream;
}

export const labelRoutes = ({ store, config, secret }: LabelParts) => {
  const once = oneAtATime('An import');
  return createRouter()
    .openapi(importRoute, async (c) => {
      const { agent: name, format, origin, source } = c.req.valid('query');
      const known = knownAgent(config, name).name;
      const counts = await once(known, () =>
        importConversations(store, {
          ...{ agent: known, format, origin, source, secret, now: new Date(), signal: c.req.raw.signal },
          pii: piiOfAgents(config),
          lines: cutLines(chunksOf(c.req.raw.body)),
        }),
      );
      return c.json({ agent: known, ...counts, problems: [...counts.problems] }, 200);
    })
    .openapi(labelRoute, async (c) => {
      const { agent: name, labels } = c.req.valid('json');
      const known = knownAgent(config, name).name;
      const counts = await importLabels(store, {
        ...{ agent: known, secret, now: new Date(), labels, pii: piiOfAgents(config) },
      });
      return c.json({ agent: known, ...counts, problems: [...counts.problems] }, 200);
    })
    .openapi(listRoute, async (c) => {
      const { agent: name, reviewer, hashed, limit: most } = c.req.valid('query');
      const known = knownAgent(config, name).name;
      const by = reviewer === undefined ? undefined : typedUser(reviewer, secret, hashed === 'true');
      const labels = await listLabels(store, { agent: known, limit: most, reviewer: by });
      return c.json({ labels: labels.map((label) => ({ ...label, at: new Date(label.at).toISOString() })) }, 200);
    });
};
