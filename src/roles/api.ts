/** The part that people and programs ask: /api, and the evaluations and runs that are begun through it. */
import { hostname } from 'node:os';
import { type Api, createApi } from '../api/api.ts';
import { createLive } from '../api/live.ts';
import type { Recorder } from '../collect/recorder.ts';
import type { KeptEngine } from '../engine/keep.ts';
import { createEvaluations } from '../evaluate/evaluations.ts';
import { progressElsewhere } from '../loop/progress.ts';
import type { Loops } from '../loop/runner.ts';
import { readMarks } from '../store/changes.ts';
import * as limits from '../store/limits.ts';
import type { Store } from '../store/postgres.ts';
import { createTrainings } from '../train/trainings.ts';
import type { Ground, Part } from './ground.ts';
import { askWorkers, isTrainingDoor } from './training-doors.ts';

export type ApiRole = Part & { readonly app: Api };

export type ApiAround = {
  readonly secret: string;
  readonly adminHash: string;
  /** Of this process, where it records. */
  readonly recorder: Recorder | null;
  /** Of this process, where it has one; without it everything is evaluated through the gateway, and nothing is trained here. */
  readonly engine: KeptEngine | null;
  readonly gatewayUrl: () => Promise<string>;
  /** Of this process; what others are at, they say in the database. */
  readonly progress: Loops['progress'];
};

/** Closing it ends its evaluations, which are callers of the gateway, and its run at a point from which it can go on. */
export function startApi(
  { config, artifacts, log, linesLost, roles }: Ground,
  store: Store,
  around: ApiAround,
): ApiRole {
  const { recorder, engine, gatewayUrl, progress, ...more } = around;
  const evaluations = createEvaluations({
    ...{ store, artifacts, config, gatewayUrl },
    ...(engine === null ? {} : { withEngine: async (use) => use((await engine.process()).engine) }),
  });
  const scans = store.within(limits.scanning); // a run reads whole datasets
  const trainings =
    engine === null ? null : createTrainings({ store: scans, artifacts, config, log, engine: engine.trainer });
  if (roles.has('worker')) trainings?.goOn();
  const looking = store.within(limits.watching, 1); // one connection for all who listen
  const live = createLive({ look: () => readMarks(looking, new Date()) });
  const app = createApi({
    ...{ store, artifacts, config, evaluations, gatewayUrl, linesLost, live, ...more },
    progress: async (agent) => progress(agent) ?? (await progressElsewhere(store, agent)),
    ...(trainings === null ? {} : { trainings }),
    elsewhere: (method, path) =>
      trainings === null && isTrainingDoor(method, path) ? (request) => askWorkers(store, request) : null,
    recorder: () => recorder?.stats() ?? null,
    hosts: [config.host, hostname(), ...config.hosts],
    onError: (error) => log.error({ err: error }, 'api: a request failed in Pawl itself'),
  });
  return {
    app,
    async close() {
      live.close();
      await evaluations.close();
      await trainings?.close();
    },
  };
}
