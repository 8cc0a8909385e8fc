/**
 * Frozen weights that can be sampled: of a model at one version, or of the base. A sampler never changes, whatever becomes of its model.
 *
 * Where the server samples in the place that trains (`shared`, dialects.ts), that takes care: sampling old weights there would put them
 * back into training. So a model that is about to step, or to go, has its sampler detached first: samples under way end, and if
 * somebody holds the sampler, its weights are saved. Who samples it afterwards has them loaded into a place of their own.
 *
 *   attached ──detach()──▶ detaching ──▶ detached ──sample()──▶ on its own        any ──dispose()──▶ gone
 *
 * On-policy training holds no sampler across a step, and pays for none of this.
 */
import type { z } from 'zod';
import { abortable } from './abortable.ts';
import type { Dialect } from './dialects.ts';
import { decodeSample } from './proto.ts';
import type { RemoteModel } from './remote-model.ts';
import type { Session } from './session.ts';
import { sampled, samplingSession } from './wire.ts';

/** A sampling session at the server, and what is to be cleared away after it. */
type Place = { readonly id: string; readonly clear: () => Promise<void> };

export type SamplerOptions = {
  readonly session: Session;
  readonly dialect: Dialect;
  readonly version: number;
  /** The model whose weights these are; null: the base itself. */
  readonly owner: RemoteModel | null;
  readonly place: Promise<Place>;
  /** A model of its own with the weights of a reference. */
  readonly revive: (path: string) => Promise<RemoteModel>;
};

export type Sampler = ReturnType<typeof createSampler>;

export function createSampler({ session, dialect, version, owner, place, revive }: SamplerOptions) {
  let holders = 0;
  let detaching: Promise<void> | undefined;
  let path: Promise<string> | undefined;
  let own: Promise<{ readonly model: RemoteModel; readonly place: Place }> | undefined;
  let seq = 0;
  const underWay = new Set<Promise<unknown>>();
  place.catch(() => {}); // whoever samples hears of it

  const alone = () => {
    own ??= (async () => {
      const model = await revive(await path!);
      return { model, place: await placeOf(session, dialect, model) };
    })();
    return own;
  };
  const here = async (): Promise<Place> => {
    await detaching;
    return path === undefined ? place : (await alone()).place;
  };

  return {
    version,
    /** Resolves when it can be sampled. */
    ready: async () => void (await here()),

    hold(): void {
      holders++;
    },
    /** True when nobody holds it any more. */
    release(): boolean {
      return --holders === 0;
    },
    get isHeld() {
      return holders > 0;
    },

    /** Where it is sampled is settled as this is called: a detaching that begins later waits for it. */
    sample(body: object, signal?: AbortSignal): Promise<z.infer<typeof sampled>> {
      const at = detaching === undefined ? place : here();
      const work = at.then(async ({ id }) => {
        signal?.throwIfAborted();
        const request = await session.submit(
          '/api/v1/asample',
          { sampling_session_id: id, seq_id: seq++, ...body, type: 'sample' },
          { signal, headers: { 'x-tinker-sampling-backpressure': '1' } },
        );
        // Followed to its end even if the caller gives up: the server works on it all the same.
        return session.result(request, sampled, decodeSample);
      });
      const ended = work.then(
        () => {},
        () => {},
      );
      underWay.add(ended);
      void ended.then(() => underWay.delete(ended));
      return abortable(work, signal);
    },

    /** Its model is about to change or to go. Call while the model takes no other request. */
    detach(): Promise<void> {
      if (dialect.snapshots !== 'shared' || owner === null) return Promise.resolve();
      detaching ??= (async () => {
        await Promise.all(underWay);
        if (holders > 0) path = (await owner.saveState()).path;
        path?.catch(() => {}); // whoever samples hears of it
        await path?.catch(() => {});
      })();
      return detaching;
    },

    /** What holds these weights, for saving them elsewhere; null: the base has nothing to save. */
    async model(): Promise<RemoteModel | null> {
      await detaching;
      return path === undefined ? owner : (await alone()).model;
    },

    async dispose(): Promise<void> {
      await Promise.all(underWay);
      const made = await own?.catch(() => undefined);
      await made?.place.clear();
      await made?.model.unload();
      await (await place.catch(() => undefined))?.clear();
    },
  };
}

/** The weights of a model as they are now, to be sampled in this session. Resolves when the server has accepted it. */
export async function freeze(
  session: Session,
  dialect: Dialect,
  model: RemoteModel,
): Promise<{ readonly place: Promise<Place> }> {
  const { session: made, trace } = await model.saveForSession();
  const clear = async () => {
    if (dialect.leavesTraces) await session.remove(trace);
  };
  return { place: made.then((id) => ({ id, clear })) };
}

const placeOf = async (session: Session, dialect: Dialect, model: RemoteModel): Promise<Place> =>
  (await freeze(session, dialect, model)).place;

export async function basePlace(session: Session, baseModel: string): Promise<Place> {
  const { sampling_session_id: id } = await session.ask(
    '/api/v1/create_sampling_session',
    {
      session_id: session.id,
      sampling_session_seq_id: session.nextSampler(),
      base_model: baseModel,
      type: 'create_sampling_session',
    },
    samplingSession,
  );
  return { id, clear: async () => {} };
}
