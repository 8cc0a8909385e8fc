/**
 * A release as somebody asks for one, by command or API: everything it names is looked up first, so that what is registered
 * can answer. Its weights are a checkpoint folder, which Pawl's own engine serves, or they are somebody else's: a model at
 * one of the installation's upstreams.
 */
import { realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import { z } from 'zod';
import { checkCheckpoint } from '../engine/check-checkpoint.ts';
import { engineUpstream } from '../engine/open.ts';
import { ConflictError, EngineError, NotFoundError } from '../errors.ts';
import { readDataset } from '../store/datasets.ts';
import type { Store } from '../store/postgres.ts';
import { listReleases, readRelease } from '../store/releases.ts';
import { readReport } from '../store/reports.ts';
import { postgresRunStore } from '../store/runs.ts';
import { createRelease } from './reconcile.ts';
import { type NewRelease, type Release, releaseSchema } from './release.ts';

const id = z.string().min(1).max(256);

export const releaseAsked = z.strictObject({
  name: releaseSchema.shape.name,
  agent: z.string().min(1).max(63),
  checkpoint: z.string().min(1).max(4096).optional(),
  upstream: z.string().min(1).max(63).optional(),
  model: releaseSchema.shape.model.optional(),
  sampling: releaseSchema.shape.sampling.optional(),
  run: id.optional(),
  report: id.optional(),
  dataset: id.optional(),
});
export type ReleaseAsked = z.output<typeof releaseAsked>;

/** What answers; all else of a release is where it came from. */
type Answering = Pick<NewRelease, 'upstream' | 'model' | 'checkpoint'>;

export async function registerRelease(
  store: Store,
  upstreams: Readonly<Record<string, unknown>>,
  asked: ReleaseAsked,
  actor: string,
  now: number,
): Promise<Release> {
  const { name, agent, sampling, report } = asked;
  const answering = asked.checkpoint === undefined ? modelAt(upstreams, asked) : await engineModel(store, asked);
  const run = asked.run === undefined ? null : await postgresRunStore(store).get(asked.run);
  if (asked.run !== undefined && run?.agent !== agent) throw missing('run', asked.run, agent);
  if (report !== undefined && (await readReport(store, report))?.agent !== agent)
    throw missing('report', report, agent);
  const dataset = asked.dataset ?? (typeof run?.settings.dataset === 'string' ? run.settings.dataset : undefined);
  if (asked.dataset !== undefined && (await readDataset(store, { id: asked.dataset }))?.agent !== agent)
    throw missing('dataset', asked.dataset, agent);
  const given: NewRelease = {
    ...{ agent, name, ...answering },
    ...(sampling === undefined ? {} : { sampling }),
    ...{ run: asked.run ?? null, report: report ?? null, dataset: dataset ?? null },
  };
  return createRelease(store, given, actor, now);
}

const missing = (what: string, given: string, agent: string): NotFoundError =>
  new NotFoundError(
    `Agent ${agent} has no ${what} ${given}; \`pawl ${what}s list --agent ${agent}\` shows those that exist.`,
  );

function modelAt(upstreams: Readonly<Record<string, unknown>>, { upstream, model }: ReleaseAsked): Answering {
  if (upstream === undefined || model === undefined)
    throw new ConflictError(
      'Say what answers: a checkpoint folder (--checkpoint), or an upstream and the model’s name there (--upstream, --model).',
    );
  const known = Object.keys(upstreams);
  if (upstream === engineUpstream)
    throw new ConflictError(
      `Upstream ${engineUpstream} is Pawl’s own engine; give the folder with --checkpoint instead.`,
    );
  if (!known.includes(upstream))
    throw new NotFoundError(
      `There is no upstream ${upstream} in the settings; ${known.length === 0 ? 'none is listed yet' : `there is ${known.join(', ')}`}. Add it to \`upstreams\` in pawl.config.ts.`,
    );
  return { upstream, model, checkpoint: null };
}

async function engineModel(store: Store, { name, agent, upstream, model, ...asked }: ReleaseAsked): Promise<Answering> {
  if (upstream !== undefined || model !== undefined)
    throw new ConflictError('A checkpoint is served by Pawl’s own engine; leave --upstream and --model away.');
  const folder = resolve(asked.checkpoint!);
  const { tokenizer } = await checkCheckpoint(folder).catch((error: unknown) => {
    if (!(error instanceof EngineError)) throw error;
    throw new ConflictError(`Release ${name} cannot be made: ${error.message}`, { cause: error });
  });
  if (tokenizer === undefined)
    throw new ConflictError(`Release ${name} cannot be made: ${folder} has no tokenizer, so it cannot answer text.`);
  // The engine knows its models by name, whosever they are.
  const others = (await listReleases(store, { upstream: engineUpstream, model: name })).filter(
    (release) => release.agent !== agent,
  );
  if (others.length > 0)
    throw new ConflictError(
      `Agent ${others[0]!.agent} has a release named ${name} on Pawl’s own engine already; choose another name.`,
    );
  return { upstream: engineUpstream, model: name, checkpoint: await realpath(folder) };
}

/** The agent's release of this name, or a sentence that there is none. */
export async function findRelease(store: Store, agent: string, name: string): Promise<Release> {
  const release = await readRelease(store, { agent, name });
  if (release === null) throw missing('release', name, agent);
  return release;
}
