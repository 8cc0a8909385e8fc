/**
 * The engine over a local socket (a Unix socket; on Windows a named pipe): `listenEngine` offers one, `remoteEngine` is
 * an Engine whose calls are made there. Loading, training, sampling and saving go this way; OpenAI's API is serve.ts.
 * Only the user who runs the engine may connect. A connection that closes takes its running samples with it; its
 * models stay.
 */
import { randomBytes } from 'node:crypto';
import { chmod, rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { EngineError, RequestError } from '../errors.ts';
import type {
  Datum,
  Engine,
  ForwardResult,
  LoraSpec,
  ModelInfo,
  PerToken,
  SampleResult,
  StepResult,
  Tokens,
} from './engine.ts';
import { createFrameReader, encodeFrame } from './frames.ts';
import type { ServedModels } from './served.ts';

/** A free address for a socket of this user. */
export function newSocketPath(): string {
  const name = `pawl-engine-${randomBytes(6).toString('hex')}`;
  return process.platform === 'win32' ? `\\\\.\\pipe\\${name}` : join(tmpdir(), `${name}.sock`);
}

// ---- What is said --------------------------------------------------------------------------------------------------

const name = z.string().max(400);
const path = z.string().max(4096);
const tokens = z.union([z.instanceof(Int32Array), z.array(z.int())]);
const perToken = z.union([z.instanceof(Float32Array), z.array(z.number())]);
const datum = z
  .object({
    tokens,
    targets: tokens,
    weights: perToken.optional(),
    logprobs: perToken.optional(),
    advantages: perToken.optional(),
  })
  .strict();
const clip = { clipLow: z.number(), clipHigh: z.number() };
const loss = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('cross_entropy') }),
  z.object({ kind: z.literal('importance_sampling') }),
  z.object({ kind: z.literal('ppo'), ...clip }),
  z.object({ kind: z.literal('cispo'), ...clip }),
]);
const adam = z
  .object({
    learningRate: z.number(),
    beta1: z.number().optional(),
    beta2: z.number().optional(),
    eps: z.number().optional(),
    weightDecay: z.number().optional(),
    gradClipNorm: z.number().optional(),
  })
  .strict();
const lora = z
  .object({ rank: z.int(), alpha: z.number(), targets: z.array(z.string()).optional(), seed: z.int().optional() })
  .strict();
const sampleParams = z
  .object({
    maxTokens: z.int(),
    temperature: z.number().optional(),
    topP: z.number().optional(),
    topK: z.int().optional(),
    minP: z.number().optional(),
    seed: z.int().optional(),
    stopTokens: z.array(z.int()).optional(),
    stop: z.array(z.string()).optional(),
    n: z.int().optional(),
    promptLogprobs: z.boolean().optional(),
  })
  .strict();

const call = z.discriminatedUnion('call', [
  z.object({ call: z.literal('load'), name, folder: path, lora: lora.optional(), replace: z.boolean().optional() }),
  z.object({ call: z.literal('models') }),
  z.object({ call: z.literal('forward'), model: name, data: z.array(datum) }),
  z.object({ call: z.literal('forwardBackward'), model: name, data: z.array(datum), loss }),
  z.object({ call: z.literal('optimStep'), model: name, adam }),
  z.object({
    call: z.literal('sample'),
    model: name,
    prompts: z.array(tokens),
    params: sampleParams,
    watch: z.boolean(),
  }),
  z.object({ call: z.literal('save'), model: name, folder: path, optimizer: z.boolean().optional() }),
  z.object({ call: z.literal('snapshot'), model: name, name }),
  z.object({ call: z.literal('unload'), name }),
]);
type Call = z.infer<typeof call>;

const request = z.object({ id: z.int(), abort: z.literal(true).optional(), body: z.unknown().optional() });

type Answer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: { readonly message: string; readonly retryable: boolean } }
  | { readonly id: number; readonly token: readonly [prompt: number, attempt: number, token: number] };

// ---- The engine's side ---------------------------------------------------------------------------------------------

export type ListenHandle = { readonly path: string; close(): Promise<void> };

export async function listenEngine(options: {
  readonly engine: Engine;
  readonly models: ServedModels;
  readonly path: string;
  readonly onError?: (error: unknown) => void;
}): Promise<ListenHandle> {
  const { path } = options;
  if (process.platform !== 'win32' && Buffer.byteLength(path) > 100) {
    throw new EngineError(`The socket path ${path} is too long: systems allow about 100 bytes.`);
  }
  await removeStaleSocket(path);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    attend(options, socket);
  });
  await new Promise<void>((done, fail) => {
    server.once('error', (cause) =>
      fail(new EngineError(`The engine socket ${path} cannot be opened: ${cause.message}.`, { cause })),
    );
    server.listen(path, done);
  });
  if (process.platform !== 'win32') await chmod(path, 0o600);
  return {
    path,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** A socket file nobody listens on is left over from a process that died. */
async function removeStaleSocket(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const answers = await new Promise<boolean>((done) => {
    const probe = connect(path);
    probe.once('connect', () => {
      probe.destroy();
      done(true);
    });
    probe.once('error', () => done(false));
  });
  if (answers) throw new EngineError(`Another engine already listens on ${path}.`);
  await rm(path, { force: true });
}

function attend({ engine, models, onError }: Parameters<typeof listenEngine>[0], socket: Socket): void {
  const read = createFrameReader();
  const running = new Map<number, AbortController>();
  const send = (answer: Answer) => {
    if (!socket.destroyed) for (const part of encodeFrame(answer)) socket.write(part);
  };
  const handle = async (message: unknown): Promise<void> => {
    const parsed = request.safeParse(message);
    if (!parsed.success) {
      socket.destroy(); // not our protocol: there is no id to answer to
      return;
    }
    const { id, abort, body } = parsed.data;
    if (abort) {
      running.get(id)?.abort();
      return;
    }
    const leave = new AbortController();
    running.set(id, leave);
    try {
      const made = call.safeParse(body);
      if (!made.success) {
        const [issue] = made.error.issues;
        throw new EngineError(`The engine does not understand this call: ${issue?.path.join('.')} ${issue?.message}.`);
      }
      send({
        id,
        result: (await perform(engine, models, made.data, leave.signal, (token) => send({ id, token }))) ?? null,
      });
    } catch (error) {
      const known = error instanceof EngineError || error instanceof RequestError;
      if (!known) onError?.(error);
      send({
        id,
        error: {
          message: error instanceof Error ? error.message : String(error),
          retryable: error instanceof EngineError && error.retryable,
        },
      });
    } finally {
      running.delete(id);
    }
  };
  socket.on('data', (chunk: Buffer) => {
    try {
      for (const message of read(chunk)) void handle(message).catch((error) => onError?.(error));
    } catch (error) {
      onError?.(error);
      socket.destroy();
    }
  });
  socket.on('error', () => {}); // 'close' follows, and says all there is to say
  socket.once('close', () => {
    for (const controller of running.values()) controller.abort();
  });
}

async function perform(
  engine: Engine,
  models: ServedModels,
  c: Call,
  signal: AbortSignal,
  onToken: (token: [number, number, number]) => void,
): Promise<unknown> {
  switch (c.call) {
    case 'load': {
      const options = c.lora ? { lora: c.lora as NonNullable<ModelInfo['lora']> } : {};
      return c.replace ? models.replace(c.name, c.folder, options) : models.load(c.name, c.folder, options);
    }
    case 'models': {
      // Under the names clients know; what is only finishing its last requests has none.
      const names = new Map(models.list().map((served) => [served.model, served.name]));
      const all = await engine.models();
      return all.flatMap((info) => (names.has(info.name) ? [{ ...info, name: names.get(info.name)! }] : []));
    }
    case 'forward':
      return models.use(c.model, ({ model }) => engine.forward(model, c.data as Datum[]));
    case 'forwardBackward':
      models.learning(c.model);
      return models.use(c.model, ({ model }) => engine.forwardBackward(model, c.data as Datum[], c.loss));
    case 'optimStep':
      models.learning(c.model);
      return models.use(c.model, ({ model }) => engine.optimStep(model, c.adam as Parameters<Engine['optimStep']>[1]));
    case 'sample':
      return models.use(c.model, ({ model }) =>
        engine.sample(model, c.prompts, c.params as Parameters<Engine['sample']>[2], {
          signal,
          ...(c.watch ? { onToken: (p: number, a: number, t: number) => onToken([p, a, t]) } : {}),
        }),
      );
    case 'save':
      await models.use(c.model, ({ model }) =>
        engine.save(model, c.folder, c.optimizer === undefined ? {} : { optimizer: c.optimizer }),
      );
      if (c.optimizer !== false) models.saved(c.model, c.folder);
      return null;
    case 'snapshot':
      return models.snapshot(c.model, c.name);
    case 'unload':
      await models.unload(c.name);
      return null;
    default:
      return c satisfies never;
  }
}

// ---- The client's side ---------------------------------------------------------------------------------------------

type Pending = {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly onToken: ((prompt: number, attempt: number, token: number) => void) | undefined;
};

export type RemoteEngine = Engine & {
  /** Gives a name that serves requests another checkpoint; none of them is dropped. */
  replace(name: string, folder: string, options?: { readonly lora?: LoraSpec }): Promise<ModelInfo>;
};

/** Connects when first used. If the engine's process dies, calls under way fail with a retryable EngineError. */
export function remoteEngine(path: string): RemoteEngine {
  let connection: Promise<Socket> | undefined;
  let closed = false;
  let nextId = 1;
  const pending = new Map<number, Pending>();

  const open = (): Promise<Socket> => {
    if (closed) return Promise.reject(new EngineError('This connection to the engine was closed.'));
    connection ??= new Promise((done, fail) => {
      const socket = connect(path);
      const read = createFrameReader();
      const drop = (why: string, cause?: unknown) => {
        if (connection === current) connection = undefined;
        const error = new EngineError(`The engine at ${path} ${why}.`, { cause, retryable: true });
        fail(error);
        for (const [id, call] of pending) {
          pending.delete(id);
          call.reject(error);
        }
      };
      let lost: unknown;
      socket.once('connect', () => done(socket));
      socket.on('error', (error) => {
        lost = error;
      });
      socket.once('close', () => drop(lost && pending.size === 0 ? 'cannot be reached' : 'went away', lost));
      socket.on('data', (chunk: Buffer) => {
        try {
          for (const message of read(chunk)) settle(message as Answer);
        } catch (error) {
          lost = error;
          socket.destroy();
        }
      });
    });
    const current = connection;
    return connection;
  };

  const settle = (answer: Answer) => {
    const call = pending.get(answer.id);
    if (!call) return;
    if ('token' in answer) {
      call.onToken?.(...answer.token);
      return;
    }
    pending.delete(answer.id);
    if ('error' in answer) call.reject(new EngineError(answer.error.message, { retryable: answer.error.retryable }));
    else call.resolve(answer.result);
  };

  const ask = async <T>(
    body: { readonly call: Call['call'] } & Readonly<Record<string, unknown>>,
    options: { readonly onToken?: Pending['onToken']; readonly signal?: AbortSignal } = {},
  ): Promise<T> => {
    const { signal } = options;
    if (signal?.aborted) throw new EngineError('The call was aborted before it began.');
    const socket = await open();
    const id = nextId++;
    const frame = encodeFrame({ id, body });
    const stop = () => {
      for (const part of encodeFrame({ id, abort: true })) socket.write(part);
    };
    signal?.addEventListener('abort', stop, { once: true });
    try {
      return (await new Promise<unknown>((resolve, reject) => {
        pending.set(id, { resolve, reject, onToken: options.onToken });
        for (const part of frame) socket.write(part);
        if (signal?.aborted) stop();
      })) as T;
    } finally {
      signal?.removeEventListener('abort', stop);
    }
  };

  return {
    traits: { computesHere: false, overlaps: true, isInside: true },
    load: (name, folder, options) =>
      ask<ModelInfo>({ call: 'load', name, folder: resolve(folder), lora: options?.lora }),
    replace: (name, folder, options) =>
      ask<ModelInfo>({ call: 'load', name, folder: resolve(folder), lora: options?.lora, replace: true }),
    models: () => ask<ModelInfo[]>({ call: 'models' }),
    forward: (model, data) => ask<ForwardResult>({ call: 'forward', model, data: data.map(packDatum) }),
    forwardBackward: (model, data, loss) =>
      ask<ForwardResult>({ call: 'forwardBackward', model, data: data.map(packDatum), loss }),
    optimStep: (model, adam) => ask<StepResult>({ call: 'optimStep', model, adam }),
    sample: (model, prompts, params, options = {}) =>
      ask<SampleResult[]>(
        {
          call: 'sample',
          model,
          prompts: prompts.map(packTokens),
          params,
          watch: options.onToken !== undefined,
        },
        options,
      ),
    save: async (model, folder, options) => {
      await ask({ call: 'save', model, folder: resolve(folder), optimizer: options?.optimizer });
    },
    snapshot: (model, name) => ask<ModelInfo>({ call: 'snapshot', model, name }),
    unload: async (name) => {
      await ask({ call: 'unload', name });
    },
    async close() {
      closed = true;
      const socket = await connection?.catch(() => undefined);
      socket?.destroy();
    },
  };
}

const packTokens = (values: Tokens) => (values instanceof Int32Array ? values : packInts(values));
const packFloats = (values: PerToken) => (values instanceof Float32Array ? values : Float32Array.from(values));

/** A token that is no 32-bit integer must reach the engine's own check as it is, not wrapped around. */
function packInts(values: readonly number[]): Int32Array | number[] {
  return values.every((value) => value === (value | 0)) ? Int32Array.from(values) : [...values];
}

function packDatum(d: Datum) {
  return {
    tokens: packTokens(d.tokens),
    targets: packTokens(d.targets),
    ...(d.weights ? { weights: packFloats(d.weights) } : {}),
    ...(d.logprobs ? { logprobs: packFloats(d.logprobs) } : {}),
    ...(d.advantages ? { advantages: packFloats(d.advantages) } : {}),
  };
}
