/**
 * The Engine interface over a server that speaks Tinker's protocol: a GPU box with SkyRL, a Ray cluster of them, or Tinker itself. Keeps
 * the models by name and the order of their requests; what is sent is batch.ts and sampling.ts, how servers differ is dialects.ts.
 *
 * The server trains adapters over one base model. A folder that is loaded is either that base (`folder` of the settings), or one that
 * `save` made: a reference to what the server keeps (reference.ts). The base itself takes no place for an adapter until it is trained.
 *
 * A server that was started again has forgotten everything: calls fail, retryable, no model is listed any more, and the next load opens
 * a new session. A run then goes on from its newest checkpoint (train/run.ts), as it does when this process died.
 */
import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { EngineError } from '../../errors.ts';
import { checkPrompt, checkSampling } from '../check-sampling.ts';
import { checkAdamParams, checkData } from '../check-training.ts';
import type { Datum, Engine, ForwardResult, LoraSpec, Loss, ModelInfo } from '../engine.ts';
import { fetchAdapter } from './archive.ts';
import { type BaseModel, readBaseModel } from './base-model.ts';
import { backwardBatch, forwardBatch, nothingPending, type Pending, resultOf, stepScale } from './batch.ts';
import { exchangedKey } from './credential.ts';
import { type DialectName, dialectOf, dialects } from './dialects.ts';
import { decodePass } from './proto.ts';
import { type Reference, readReference, writeReference } from './reference.ts';
import { createRemoteModel, type RemoteModel } from './remote-model.ts';
import { isSameModel } from './same-model.ts';
import { basePlace, createSampler, freeze, type Sampler } from './samplers.ts';
import { sampleResult, seedOf, wireSampling } from './sampling.ts';
import { openSession, type Session } from './session.ts';
import { createTransport } from './transport.ts';
import { passed, stepped, type WirePass } from './wire.ts';

export type TinkerOptions = {
  readonly url: string;
  readonly apiKey?: string | undefined;
  /** The name by which the server knows its model. */
  readonly baseModel: string;
  /** The same model here: its config and tokenizer. */
  readonly folder: string;
  readonly dialect?: DialectName | undefined;
  /** Of an adapter nobody gave a rank for. */
  readonly rank?: number | undefined; // 16
  /** The server is part of the deployment. */
  readonly inside?: boolean | undefined;
  /** How long a server that cannot be reached is waited for. */
  readonly patienceMs?: number | undefined; // 5 minutes
  /** How long one request may take. */
  readonly limitMs?: number | undefined; // an hour
  readonly heartbeatMs?: number | undefined;
};

type Trainable = {
  readonly kind: 'trainable';
  readonly name: string;
  readonly about: BaseModel;
  readonly rank: number;
  readonly seed: number;
  readonly from?: Reference | undefined;
  remote: RemoteModel | undefined;
  version: number;
  pending: Pending;
  /** Of the current version. */
  sampler: Sampler | undefined;
  /** The last request; the next is sent when it was accepted, or refused. */
  turn: Promise<unknown>;
};
type Snapshot = {
  readonly kind: 'snapshot';
  readonly name: string;
  readonly about: BaseModel;
  readonly rank: number;
  readonly version: number;
  readonly sampler: Sampler;
};
type Entry = Trainable | Snapshot;

const closingMs = 10_000;

export function createTinkerEngine(options: TinkerOptions): Engine {
  const { url, apiKey, baseModel, rank: defaultRank = 16, patienceMs = 300_000, limitMs = 3_600_000 } = options;
  const dialect = dialects[options.dialect ?? dialectOf(url)];
  const folder = resolve(options.folder);
  const ending = new AbortController();
  const connection = { url, patienceMs, signal: ending.signal };
  const key =
    apiKey === undefined
      ? undefined
      : dialect.exchangesKey
        ? exchangedKey(apiKey, connection)
        : async (): Promise<string> => apiKey;
  const transport = createTransport({ ...connection, ...(key ? { key } : {}) });
  const entries = new Map<string, Entry>();
  const loading = new Set<string>();
  let opening: Promise<Session> | undefined;
  let base: Sampler | undefined;

  const session = (): Promise<Session> => {
    if (ending.signal.aborted) throw new EngineError('The engine is closed.');
    opening ??= openSession({
      transport,
      dialect,
      waits: { limitMs, patienceMs },
      ...(options.heartbeatMs === undefined ? {} : { heartbeatMs: options.heartbeatMs }),
      onLost: () => {
        opening = undefined;
        base = undefined;
        entries.clear();
      },
    });
    // A server that is not there yet may be there when the next one asks.
    const asked = opening;
    asked.catch(() => {
      if (opening === asked) opening = undefined;
    });
    return asked;
  };

  function entryOf(name: string): Entry {
    const entry = entries.get(name);
    if (entry !== undefined) return entry;
    const known = [...entries.keys()].join(', ') || 'none';
    throw new EngineError(`There is no model called ${name}; loaded are: ${known}.`);
  }

  function trainableOf(name: string): Trainable {
    const entry = entryOf(name);
    if (entry.kind === 'trainable') return entry;
    throw new EngineError(`${name} is a snapshot: it can be sampled and saved, not trained. Load it to train it.`);
  }

  function claim(name: string): void {
    if (entries.has(name) || loading.has(name))
      throw new EngineError(`A model called ${name} is loaded already; unload it first, or use another name.`);
    loading.add(name);
  }

  /** Runs `send` when the model's earlier requests were sent. */
  function inOrder<T>(entry: Trainable, send: () => Promise<T>): Promise<T> {
    const sent = entry.turn.then(send);
    entry.turn = sent.catch(() => {});
    return sent;
  }

  const createModel = async (parts: Pick<Trainable, 'rank' | 'seed'> & { from?: Reference | undefined }) =>
    createRemoteModel({ session: await session(), dialect, baseModel, ...parts });

  /** What was lost with a session is not made again behind its caller's back: it would be another model. */
  function refuseLost(entry: Trainable): void {
    if (entries.get(entry.name) !== entry && !loading.has(entry.name))
      throw new EngineError(`${entry.name} is not loaded any more; load it again.`, { retryable: true });
  }

  async function remoteOf(entry: Trainable): Promise<RemoteModel> {
    refuseLost(entry);
    if (entry.remote === undefined) {
      entry.remote = await createModel(entry);
      // What was sampled until now was the base, and stays it.
      entry.sampler = undefined;
    }
    return entry.remote;
  }

  async function samplerOf(entry: Trainable): Promise<Sampler> {
    refuseLost(entry);
    const open = await session();
    const revive = (path: string) =>
      createModel({ rank: entry.rank, seed: 0, from: { ...referenceOf(entry, path), optimizer: false } });
    const common = { session: open, dialect, revive };
    if (entry.remote === undefined) {
      base ??= createSampler({ ...common, version: 0, owner: null, place: basePlace(open, baseModel) });
      return base;
    }
    const { remote: owner, version } = entry;
    entry.sampler ??= createSampler({ ...common, version, owner, ...(await freeze(open, dialect, owner)) });
    return entry.sampler;
  }

  /** The weights are about to change or to go: what was frozen of them must not. */
  async function leaveSampler(entry: Trainable): Promise<void> {
    const { sampler } = entry;
    entry.sampler = undefined;
    if (sampler === undefined) return;
    await sampler.detach();
    if (!sampler.isHeld) void sampler.dispose().catch(() => {});
  }

  const referenceOf = ({ rank, version }: Pick<Entry, 'rank' | 'version'>, path: string): Reference => ({
    path,
    url,
    baseModel,
    rank,
    version,
    optimizer: true,
  });

  async function drop(entry: Entry): Promise<void> {
    entries.delete(entry.name);
    if (entry.kind === 'snapshot') {
      const isLive = [...entries.values()].some(
        (other) => other.kind === 'trainable' && other.sampler === entry.sampler,
      );
      if (entry.sampler.release() && !isLive && entry.sampler !== base) await entry.sampler.dispose();
      return;
    }
    await inOrder(entry, async () => {
      const { remote } = entry;
      if (remote === undefined) return;
      await leaveSampler(entry);
      if (dialect.leavesTraces && entry.pending.rows > 0) {
        // The next model in this place would begin with this one's gradient.
        const request = await remote.step(checkAdamParams({ learningRate: 0 }));
        await remote.session.result(request, stepped);
      }
      await remote.unload();
    });
  }

  /** Sends every pass of some data in order; resolves to the result of them all. */
  async function pass(
    entry: Trainable,
    kind: 'forward' | 'forward_backward',
    make: () => readonly WirePass[],
    data: readonly Datum[],
    loss?: Loss,
  ): Promise<ForwardResult> {
    const { at, requests } = await inOrder(entry, async () => {
      const remote = await remoteOf(entry);
      const accepted: string[] = [];
      for (const one of make()) accepted.push(await remote.send(kind, one));
      return { at: remote.session, requests: accepted };
    });
    return resultOf(data, await Promise.all(requests.map((id) => at.result(id, passed, decodePass))), loss);
  }

  function infoOf(entry: Entry): ModelInfo {
    const { bounds, parameters, adapterParameters } = entry.about;
    const adapter = adapterParameters(entry.rank);
    return {
      name: entry.name,
      kind: entry.kind,
      parameters: parameters + adapter,
      trainableParameters: entry.kind === 'trainable' ? adapter : 0,
      vocabulary: bounds.vocab_size,
      context: bounds.max_position_embeddings,
      version: entry.version,
      // At the server: an adapter with its gradient and two moments, or alone. The base is there for everyone.
      bytes: (entry.kind === 'trainable' ? 16 : 4) * adapter,
      lora: { rank: entry.rank, alpha: dialect.alpha },
    };
  }

  return {
    traits: {
      computesHere: false,
      overlaps: dialect.snapshots === 'isolated',
      isInside: options.inside === true,
    },

    async load(name, from, { lora } = {}) {
      claim(name);
      try {
        const reference = await readReference(from);
        await checkSource(from, reference, lora);
        const entry: Trainable = {
          kind: 'trainable',
          name,
          about: await readBaseModel(folder),
          rank: reference?.rank ?? lora?.rank ?? defaultRank,
          seed: lora?.seed ?? 0,
          from: reference ?? undefined,
          remote: undefined,
          version: reference?.optimizer ? reference.version : 0,
          pending: nothingPending,
          sampler: undefined,
          turn: Promise.resolve(),
        };
        await session();
        if (reference || lora) await inOrder(entry, () => remoteOf(entry));
        entries.set(name, entry);
        return infoOf(entry);
      } finally {
        loading.delete(name);
      }
    },

    async models() {
      return [...entries.values()].map(infoOf);
    },

    async forward(model, data) {
      const entry = trainableOf(model);
      checkData(entry.about.bounds, data);
      return pass(entry, 'forward', () => forwardBatch(dialect, data), data);
    },

    async forwardBackward(model, data, loss) {
      const entry = trainableOf(model);
      checkData(entry.about.bounds, data, loss);
      const make = () => {
        const { passes, pending } = backwardBatch(dialect, data, loss, entry.pending);
        entry.pending = pending;
        return passes;
      };
      return pass(entry, 'forward_backward', make, data, loss);
    },

    async optimStep(model, adam) {
      const entry = trainableOf(model);
      const params = checkAdamParams(adam);
      const { at, request, scale, version } = await inOrder(entry, async () => {
        const remote = await remoteOf(entry);
        await leaveSampler(entry);
        const of = stepScale(dialect, entry.pending);
        const accepted = await remote.step({ ...params, eps: params.eps * of });
        entry.pending = nothingPending;
        entry.version++;
        return { at: remote.session, request: accepted, scale: of, version: entry.version };
      });
      const { metrics } = await at.result(request, stepped);
      const found = Object.entries(metrics ?? {}).find(([name]) => dialect.gradNorm.test(name));
      // A number that is none comes as null.
      if (found && (found[1] === null || !Number.isFinite(found[1])))
        throw new EngineError(
          'The gradient’s norm is no number: the weights have diverged. Go back to an earlier checkpoint.',
        );
      return { gradNorm: found ? found[1]! / scale : null, version };
    },

    async sample(model, prompts, params, { onToken, signal } = {}) {
      const entry = entryOf(model);
      const { bounds, ends } = entry.about;
      checkSampling(params, ends.textStream !== undefined);
      for (const [i, prompt] of prompts.entries()) checkPrompt(bounds, prompt, i, params.maxTokens);
      signal?.throwIfAborted();
      const start = (sampler: Sampler) => ({
        version: sampler === base ? entry.version : sampler.version,
        answers: Promise.all(
          prompts.map((prompt, i) =>
            sampler.sample(
              {
                num_samples: params.n ?? 1,
                prompt: { chunks: [{ type: 'encoded_text', tokens: Array.from(prompt) }] },
                sampling_params: wireSampling(dialect, params, {
                  seed: seedOf(params.seed ?? randomBytes(6).readUIntBE(0, 6), i),
                  stopTokens: params.stopTokens ?? ends.stopTokens,
                  room: bounds.max_position_embeddings - prompt.length,
                }),
                prompt_logprobs: params.promptLogprobs ?? false,
                topk_prompt_logprobs: 0,
              },
              signal,
            ),
          ),
        ),
      });
      const { version, answers } =
        entry.kind === 'snapshot'
          ? start(entry.sampler)
          : await inOrder(entry, async () => start(await samplerOf(entry)));
      const results = (await answers).map((answer, i) =>
        sampleResult(dialect, answer, { params, promptSize: prompts[i]!.length, version, ends }),
      );
      // The server tells nothing before the end.
      for (const [i, { samples }] of results.entries())
        for (const [k, { tokens }] of samples.entries())
          for (const token of tokens) {
            onToken?.(i, k, token);
            signal?.throwIfAborted();
          }
      return results;
    },

    async save(model, to, { optimizer = true } = {}) {
      const entry = entryOf(model);
      if (entry.kind === 'trainable') {
        const { path } = await inOrder(entry, async () => (await remoteOf(entry)).saveState());
        await writeReference(to, { ...referenceOf(entry, await path), optimizer });
        return;
      }
      const remote = await entry.sampler.model();
      if (remote === null)
        throw new EngineError(`${model} is the base model as it is: there is no adapter to save. Train it first.`);
      const path = await (await remote.saveState()).path;
      const files = await fetchAdapter(transport, async () => (await remote.saveSampler()).path, folder, dialect);
      await writeReference(to, { ...referenceOf(entry, path), optimizer: false }, files);
    },

    async snapshot(model, name) {
      const entry = trainableOf(model);
      claim(name);
      try {
        const snapshot = await inOrder(entry, async () => {
          const sampler = await samplerOf(entry);
          sampler.hold();
          const { about, rank, version } = entry;
          return { kind: 'snapshot', name, about, rank, version, sampler } as const;
        });
        await snapshot.sampler.ready();
        entries.set(name, snapshot);
        return infoOf(snapshot);
      } finally {
        loading.delete(name);
      }
    },

    async unload(name) {
      await drop(entryOf(name));
    },

    async close() {
      if (ending.signal.aborted) return;
      // The places of our models are wanted by others; but a server that does not answer cannot keep us.
      const gone = Promise.allSettled([...entries.values()].map(drop));
      if (opening !== undefined) await Promise.race([gone, wait(closingMs, undefined, { ref: false })]);
      (await opening?.catch(() => undefined))?.close();
      ending.abort(new EngineError('The engine is closed.'));
    },
  };

  async function checkSource(from: string, reference: Reference | null, lora: LoraSpec | undefined): Promise<void> {
    if (reference !== null) {
      if (lora !== undefined)
        throw new EngineError(`${from} holds an adapter of its own; load it without lora, or load its base.`);
      if (reference.baseModel !== baseModel)
        throw new EngineError(
          `${from} was trained over ${reference.baseModel}, and engine.baseModel is ${baseModel}; take the server it was trained at.`,
        );
      return;
    }
    if (!(await isSameModel(from, folder)))
      throw new EngineError(
        `The server at ${url} trains adapters over ${baseModel}, whose folder here is ${folder} (engine.folder). ${from} is neither that model nor something that was saved there.`,
      );
    if (lora?.targets !== undefined)
      throw new EngineError(`The server at ${url} chooses itself which layers it adapts; leave out lora.targets.`);
  }
}
