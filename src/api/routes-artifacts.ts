/** What is kept as files: look at it, check it, and clear away what nothing uses. */
import { createRoute, z } from '@hono/zod-openapi';
import { artifactKinds, isReference } from '../artifacts/artifact.ts';
import { type Entry, findArtifact, listArtifacts } from '../artifacts/inventory.ts';
import { pruneArtifacts } from '../artifacts/prune.ts';
import { ArtifactError, RequestError } from '../errors.ts';
import type { ApiParts } from './api.ts';
import { body, createRouter, json, problem, refusals, security } from './declare.ts';
import { limit } from './schema.ts';

const listedSchema = z
  .object({
    reference: z.string().openapi({ example: `artifact:${'0123456789abcdef'.repeat(4)}` }),
    kind: z.enum(artifactKinds).nullable().openapi({ description: 'null: its manifest is not what was kept.' }),
    of: z.string(),
    bytes: z.int(),
    files: z.int(),
    keptAt: z.iso.datetime(),
    referredBy: z.array(z.string()).openapi({ description: 'What in the database uses it.' }),
  })
  .openapi('Artifact');
const detailSchema = listedSchema
  .omit({ files: true })
  .extend({
    needs: z.array(z.string()),
    files: z.array(z.object({ path: z.string(), size: z.int(), sha256: z.string() })),
  })
  .openapi('ArtifactDetail');

const wire = ({ reference: ref, manifest, bytes, at, referredBy }: Entry) => ({
  reference: ref,
  kind: manifest?.kind ?? null,
  of: manifest?.of ?? '',
  bytes,
  keptAt: new Date(at).toISOString(),
  referredBy: [...referredBy],
});

const param = z.object({
  reference: z
    .string()
    .refine(isReference, 'artifact: and 64 hexadecimal digits')
    .openapi({ param: { name: 'reference', in: 'path' } }),
});
const none = { 404: problem('There is no such artifact.') };
const listRoute = createRoute({
  method: 'get',
  path: '/api/artifacts',
  summary: 'List artifacts, newest first, with what uses them',
  security,
  request: { query: z.strictObject({ limit: limit(50) }) },
  responses: {
    200: json(z.object({ where: z.string(), artifacts: z.array(listedSchema) }), 'The artifacts.'),
    ...refusals,
  },
});
const readRoute = createRoute({
  method: 'get',
  path: '/api/artifacts/{reference}',
  summary: 'One artifact: its files, and what uses it',
  security,
  request: { params: param },
  responses: { 200: json(detailSchema, 'The artifact.'), ...none, ...refusals },
});
const verifyRoute = createRoute({
  method: 'post',
  path: '/api/artifacts/{reference}/verify',
  summary: 'Read every byte of an artifact and compare it with what was kept; the answer comes when that is done',
  security,
  request: { params: param },
  responses: {
    200: json(z.object({ ok: z.boolean(), problem: z.string().nullable() }), 'Whether it is as it was.'),
    ...none,
    409: problem('Another is being checked.'),
    ...refusals,
  },
});
const pruneRoute = createRoute({
  method: 'post',
  path: '/api/artifacts/prune',
  summary: 'Remove what nothing uses and is a day old; without `dryRun: false` only says what that is',
  security,
  request: { body: body(z.strictObject({ dryRun: z.boolean().default(true) })) },
  responses: {
    200: json(
      z.object({
        dryRun: z.boolean(),
        kept: z.int(),
        young: z.int(),
        removed: z.array(z.string()),
        files: z.int().openapi({ description: 'Of uploads that never ended.' }),
      }),
      'What was removed, or would be.',
    ),
    409: problem('The database uses nothing of what is there, or this is being done already.'),
    ...refusals,
  },
});

export const artifactRoutes = ({ store, artifacts }: Pick<ApiParts, 'store' | 'artifacts'>) => {
  let isBusy = false;
  /** Reading everything, twice at once, would only take twice as long. */
  const once = async <T>(work: () => Promise<T>): Promise<T> => {
    if (isBusy)
      throw new RequestError(
        409,
        'already_running',
        'Artifacts are being checked or cleared away; wait for that to end.',
      );
    isBusy = true;
    try {
      return await work();
    } finally {
      isBusy = false;
    }
  };
  return createRouter()
    .openapi(listRoute, async (c) => {
      const entries = await listArtifacts(artifacts, store, c.req.valid('query').limit);
      const shown = entries.map((one) => ({ ...wire(one), files: one.manifest?.files.length ?? 0 }));
      return c.json({ where: artifacts.where, artifacts: shown }, 200);
    })
    .openapi(readRoute, async (c) => {
      const found = await findArtifact(artifacts, store, c.req.valid('param').reference);
      const { needs = [], files = [] } = found.manifest ?? {};
      return c.json({ ...wire(found), needs: [...needs], files: [...files] }, 200);
    })
    .openapi(verifyRoute, async (c) => {
      const { reference: ref } = c.req.valid('param');
      await findArtifact(artifacts, store, ref);
      const wrong = await once(() =>
        artifacts.verify(ref, c.req.raw.signal).then(
          () => null,
          (error: unknown) => {
            if (error instanceof ArtifactError && !error.retryable) return error.message;
            throw error;
          },
        ),
      );
      return c.json({ ok: wrong === null, problem: wrong }, 200);
    })
    .openapi(pruneRoute, async (c) => {
      const { dryRun } = c.req.valid('json');
      const pruned = await once(() => pruneArtifacts(artifacts, store, { now: Date.now(), dryRun }));
      return c.json({ ...pruned, removed: pruned.removed.map((one) => one.reference), dryRun }, 200);
    });
};
