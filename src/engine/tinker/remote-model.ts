/**
 * A model at the server: an adapter over the base, its optimizer, and the number of the next request. Servers carry the requests of a
 * model out in the order of these numbers and know a repeated one by its number, so callers send one after the other (engine.ts
 * queues them); results are awaited apart from that.
 */
import { randomBytes } from 'node:crypto';
import { EngineError } from '../../errors.ts';
import type { AdamParams } from '../engine.ts';
import type { Dialect } from './dialects.ts';
import { encodePass } from './proto.ts';
import type { Session } from './session.ts';
import { Refusal } from './transport.ts';
import { anything, modelMade, samplerPath, saved, savedForSampling, tinkerPath, type WirePass } from './wire.ts';

export type RemoteModel = {
  readonly id: string;
  /** Where its results are asked for. */
  readonly session: Session;
  /** Each resolves to the id of a future when it is accepted. */
  send(kind: 'forward' | 'forward_backward', pass: WirePass): Promise<string>;
  step(adam: Required<AdamParams>): Promise<string>;
  /** Resolves when it is accepted, to what resolves to the reference when it is done. */
  saveState(): Promise<{ readonly path: Promise<string> }>;
  saveSampler(): Promise<{ readonly path: Promise<string> }>;
  /** For sampling in this session only. */
  saveForSession(): Promise<{ readonly session: Promise<string>; readonly trace: string }>;
  unload(): Promise<void>;
};

export type ModelOptions = {
  readonly session: Session;
  readonly dialect: Dialect;
  readonly baseModel: string;
  readonly rank: number;
  readonly seed: number;
  /** Where the weights come from, if not from the seed. */
  readonly from?: { readonly path: string; readonly optimizer: boolean } | undefined;
};

export async function createRemoteModel(options: ModelOptions): Promise<RemoteModel> {
  const { session, dialect, baseModel, rank, seed, from } = options;
  const asked = await session.submit('/api/v1/create_model', {
    session_id: session.id,
    model_seq_id: session.nextModel(),
    base_model: baseModel,
    lora_config: { rank, seed, train_unembed: false, train_mlp: true, train_attn: true },
    type: 'create_model',
  });
  const { model_id: id } = await session.result(asked, modelMade);
  let seq = 0;

  /** A number is used up when the server has taken the request. */
  const submit = async (
    path: string,
    body: object | ((number: number) => Buffer),
    onRetry?: () => void,
  ): Promise<string> => {
    const content = typeof body === 'function' ? body(seq + 1) : { model_id: id, seq_id: seq + 1, ...body };
    const request = await session.submit(`/api/v1/${path}`, content, onRetry ? { onRetry } : {});
    seq++;
    return request;
  };

  /** A save whose first try was lost on the way may have been made; its name is then taken, and another does as well. */
  const submitSave = async (path: string, body: () => object): Promise<string> => {
    let tries = 1;
    try {
      return await submit(path, body(), () => tries++);
    } catch (error) {
      if (tries === 1 || !(error instanceof Refusal) || error.status !== 409) throw error;
      return submit(path, body());
    }
  };

  const unload = async () => {
    await session.result(
      await session.submit('/api/v1/unload_model', { model_id: id, type: 'unload_model' }),
      anything,
    );
  };

  if (from) {
    try {
      const request = await submit('load_weights', {
        path: from.path,
        optimizer: from.optimizer,
        type: 'load_weights',
      });
      await session.result(request, anything);
    } catch (error) {
      await unload().catch(() => {});
      throw error;
    }
  }

  return {
    id,
    session,
    // A forward is a backward that says it is none.
    send: (kind, pass) => submit('forward_backward', (number) => encodePass(kind, id, number, pass)),
    step: ({ learningRate, beta1, beta2, eps, weightDecay, gradClipNorm }) =>
      submit('optim_step', {
        adam_params: {
          learning_rate: learningRate,
          beta1,
          beta2,
          eps,
          weight_decay: weightDecay,
          ...(dialect.clipsGradient ? { grad_clip_norm: gradClipNorm } : {}),
        },
        type: 'optim_step',
      }),
    async saveState() {
      const request = await submitSave('save_weights', () => ({
        path: newName(),
        overwrite: false,
        type: 'save_weights',
      }));
      return { path: session.result(request, saved).then(({ path }) => checked(path)) };
    },
    async saveSampler() {
      const request = await submitSave('save_weights_for_sampler', () => ({
        path: newName(),
        type: 'save_weights_for_sampler',
      }));
      return { path: session.result(request, saved).then(({ path }) => checked(samplerPath(path))) };
    },
    async saveForSession() {
      let sampler = 0;
      const request = await submitSave('save_weights_for_sampler', () => {
        sampler = session.nextSampler();
        return { sampling_session_seq_id: sampler, type: 'save_weights_for_sampler' };
      });
      return {
        trace: `/api/v1/training_runs/${id}/checkpoints/sampler_weights/ss${sampler}_seq${seq}`,
        session: session.result(request, savedForSampling).then(({ sampling_session_id: made }) => {
          if (made) return made;
          throw new EngineError('The server saved weights for sampling and did not say how to sample them.');
        }),
      };
    },
    unload,
  };
}

/** Letters and digits only, and never the same twice. */
const newName = (): string => `pawl-${Date.now().toString(36)}-${randomBytes(4).toString('hex')}`;

function checked(path: string): string {
  const parsed = tinkerPath.safeParse(path);
  if (parsed.success) return parsed.data;
  throw new EngineError(`The server saved weights as ${JSON.stringify(path.slice(0, 200))}, which is no reference.`);
}
