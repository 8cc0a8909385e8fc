/**
 * A release as somebody asks for one, by command or API: everything it names is looked up first, so that what is registered
 * can answer. Its weights are a checkpoint, which Pawl's own engine serves; an adapter, which one of the installation's upstreams is
 * told to load; or somebody else's: a model that an upstream has. A folder of this machine is kept as an artifact, so that
 * whichever machine answers has it.
 */
import { realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import { z } from 'zod';
import { isReference } from '../artifacts/artifact.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import type { Config } from '../config.ts';
import { checkCheckpoint } from '../engine/check-checkpoint.ts';
import { carriesMark } from '../engine/internal-mark.ts';
import { keepCheckpoint } from '../engine/keep-checkpoint.ts';
import { engineUpstream } from '../engine/open.ts';
import { ArtifactError, ConflictError, EngineError, NotFoundError } from '../errors.ts';
import { readDataset } from '../store/datasets.ts';
import type { Store } from '../store/postgres.ts';
import { listReleases, readRelease, servingRelease } from '../store/releases.ts';
import { readReport } from '../store/reports.ts';
import { postgresRunStore } from '../store/runs.ts';
import type { RunRecord } from '../train/run-record.ts';
import { adapterName, keepAdapter } from './adapter.ts';
import { cameFromInternal, createRelease } from './reconcile.ts';
import { type NewRelease, type Release, releaseSchema } from './release.ts';
import { adapterOfRun } from './run-adapter.ts';

const id = z.string().min(1).max(256);

export const releaseAsked = z.strictObject({
  name: releaseSchema.shape.name,
  agent: z.string().min(1).max(63),
  checkpoint: z.string().min(1).max(4096).optional(),
  adapter: z.string().min(1).max(4096).optional(),
  upstream: z.string().min(1).max(63).optional(),
  model: releaseSchema.shape.model.optional(),
  sampling: releaseSchema.shape.sampling.optional(),
  prompt: releaseSchema.shape.prompt.unwrap().optional(),
  thinking: releaseSchema.shape.thinking.unwrap().optional(),
  parent: releaseSchema.shape.name.optional(),
  run: id.optional(),
  report: id.optional(),
  dataset: id.optional(),
});
export type ReleaseAsked = z.output<typeof releaseAsked>;

/** What answers; all else of a release is where it came from. */
type Answering = Pick<NewRelease, 'upstream' | 'model' | 'checkpoint'>;

type Registry = {
  readonly store: Store;
  readonly artifacts: Artifacts;
  /** Says what takes more than a moment. */
  readonly say?: (text: string) => void;
};

export async function registerRelease(
  registry: Registry,
  config: Pick<Config, 'upstreams' | 'engine'>,
  asked: ReleaseAsked,
  actor: string,
  now: number,
): Promise<Release> {
  const { store } = registry;
  const { name, agent, sampling, prompt = null, thinking = null, report } = asked;
  const run = asked.run === undefined ? null : await postgresRunStore(store).get(asked.run);
  if (asked.run !== undefined && run?.agent !== agent) throw missing('run', asked.run, agent);
  const answering = await answeringOf(registry, config, asked, run);
  if (report !== undefined && (await readReport(store, report))?.agent !== agent)
    throw missing('report', report, agent);
  const dataset = asked.dataset ?? (typeof run?.settings.dataset === 'string' ? run.settings.dataset : undefined);
  if (asked.dataset !== undefined && (await readDataset(store, { id: asked.dataset }))?.agent !== agent)
    throw missing('dataset', asked.dataset, agent);
  if (thinking !== null && config.upstreams[answering.upstream]?.thinking === undefined)
    throw new ConflictError(
      answering.upstream === engineUpstream
        ? 'Pawl’s own engine has no thinking budget: leave --thinking away, or serve the model from an upstream that has one (docs/releases.md).'
        : `Upstream ${answering.upstream} cannot be told of a thinking budget. Set thinking in it in pawl.config.ts (docs/releases.md), or leave --thinking away.`,
    );
  const from = { run: asked.run ?? null, report: report ?? null, dataset: dataset ?? null };
  const { upstream, checkpoint } = answering;
  const internal =
    (await cameFromInternal(store, from)) ||
    (checkpoint != null && (await carriesMark(registry.artifacts, checkpoint)));
  if (internal) refuseOutside(name, upstream, config.upstreams);
  const parent =
    asked.parent === undefined ? await servingRelease(store, agent) : await findRelease(store, agent, asked.parent);
  const given: NewRelease = {
    ...{ prompt, thinking, parent: parent === null || parent.name === name ? null : parent.id },
    ...{ agent, name, ...answering },
    ...(sampling === undefined ? {} : { sampling }),
    ...{ ...from, internal },
  };
  return createRelease(store, given, actor, now);
}

/** Weights that learned from what is confidential are Pawl's own engine's, or of a server that the settings call their own. */
function refuseOutside(name: string, upstream: string, upstreams: Config['upstreams']): void {
  if (upstream === engineUpstream || upstreams[upstream]?.inside) return;
  throw new ConflictError(
    `Release ${name} cannot be made: its model is internal, it learned from what curate.confidential names, and upstream ${upstream} is not known as part of your deployment. Serve it with Pawl’s own engine (--checkpoint), or say \`inside: true\` in that upstream in pawl.config.ts if it is.`,
  );
}

const missing = (what: string, given: string, agent: string): NotFoundError =>
  new NotFoundError(
    `Agent ${agent} has no ${what} ${given}; \`pawl ${what}s list --agent ${agent}\` shows those that exist.`,
  );

async function answeringOf(
  registry: Registry,
  config: Pick<Config, 'upstreams' | 'engine'>,
  asked: ReleaseAsked,
  run: RunRecord | null,
): Promise<Answering> {
  const { checkpoint, adapter, upstream, model } = asked;
  if (checkpoint !== undefined) return engineModel(registry, asked);
  if (upstream === undefined || (model === undefined && adapter === undefined && run === null))
    throw new ConflictError(
      'Say what answers: a checkpoint (--checkpoint), an adapter or the run that made it and the upstream that is to load it (--adapter or --run, --upstream), or an upstream and the model’s name there (--upstream, --model).',
    );
  if (upstream === engineUpstream)
    throw new ConflictError(
      `Upstream ${engineUpstream} is Pawl’s own engine; give the folder with --checkpoint instead.`,
    );
  const known = Object.keys(config.upstreams);
  if (!known.includes(upstream))
    throw new NotFoundError(
      `There is no upstream ${upstream} in the settings; ${known.length === 0 ? 'none is listed yet' : `there is ${known.join(', ')}`}. Add it to \`upstreams\` in pawl.config.ts.`,
    );
  if (model === undefined) return adapterAt(registry, config, { ...asked, upstream }, run);
  if (adapter !== undefined)
    throw new ConflictError(
      'An adapter gets its name at the server from Pawl; leave --model away, or --adapter where the server has it already.',
    );
  return { upstream, model, checkpoint: null };
}

/** Sentences about what was given are the asker's to read, whatever found them out. */
const refusedFor =
  (name: string) =>
  (error: unknown): never => {
    if (!(error instanceof EngineError || (error instanceof ArtifactError && !error.retryable))) throw error;
    throw new ConflictError(`Release ${name} cannot be made: ${error.message}`, { cause: error });
  };

async function adapterAt(
  { store, artifacts, say = () => {} }: Registry,
  { upstreams, engine }: Pick<Config, 'upstreams' | 'engine'>,
  { name, adapter, upstream }: ReleaseAsked & { readonly upstream: string },
  run: RunRecord | null,
): Promise<Answering> {
  if (upstreams[upstream]!.adapters === undefined)
    throw new ConflictError(
      `Upstream ${upstream} is not one that Pawl may tell to load adapters. Set adapters: { kind: 'vllm' } in it in pawl.config.ts; or have it load the adapter yourself, and name it with --model.`,
    );
  const kept =
    adapter === undefined
      ? adapterOfRun(run!, { runs: postgresRunStore(store), artifacts, engine, say })
      : artifacts.folder(isReference(adapter) ? adapter : resolve(adapter)).then((at) => keepAdapter(artifacts, at));
  const checkpoint = await kept.catch(refusedFor(name));
  return { upstream, model: adapterName(name, checkpoint), checkpoint };
}

async function engineModel(
  { store, artifacts }: Registry,
  { name, agent, adapter, upstream, model, checkpoint }: ReleaseAsked,
): Promise<Answering> {
  if (upstream !== undefined || model !== undefined || adapter !== undefined)
    throw new ConflictError(
      'A checkpoint is served by Pawl’s own engine; leave --upstream, --model and --adapter away. An adapter for another server is given with --adapter instead.',
    );
  const refused = refusedFor(name);
  const isKept = isReference(checkpoint!);
  const folder = isKept ? await artifacts.folder(checkpoint!).catch(refused) : resolve(checkpoint!);
  const { tokenizer } = await checkCheckpoint(folder).catch(refused);
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
  const answers = { upstream: engineUpstream, model: name };
  if (isKept) return { ...answers, checkpoint: checkpoint! };
  // A release from before there were artifacts has the path; the same again is still the same release.
  const path = await realpath(folder);
  if ((await readRelease(store, { agent, name }))?.checkpoint === path) return { ...answers, checkpoint: path };
  return { ...answers, checkpoint: await keepCheckpoint(artifacts, path).catch(refused) };
}

/** The agent's release of this name, or a sentence that there is none. */
export async function findRelease(store: Store, agent: string, name: string): Promise<Release> {
  const release = await readRelease(store, { agent, name });
  if (release === null) throw missing('release', name, agent);
  return release;
}
