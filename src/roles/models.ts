/** What answers calls: the model servers of the settings and, once something needs it, Pawl's own engine beside them. */
import { type KeptAdapters, keepAdapters, type Served } from '../deploy/keep-adapters.ts';
import { type KeptEngine, keepEngine, type Placed } from '../engine/keep.ts';
import { engineUpstream, engineWeights } from '../engine/open.ts';
import { connectUpstreams, type Upstreams } from '../gateway/upstreams.ts';
import type { StoredRoute } from '../store/rollouts.ts';
import type { Ground } from './ground.ts';

export type Models = {
  readonly upstreams: Upstreams;
  readonly engine: KeptEngine;
  /** What other servers are told to load. */
  readonly adapters: KeptAdapters;
};

export function openModels({
  config,
  artifacts,
  log,
  child,
}: Pick<Ground, 'config' | 'artifacts' | 'log' | 'child'>): Models {
  const upstreams = connectUpstreams(config.upstreams);
  const onStart = (url: string) =>
    upstreams.add(engineUpstream, {
      baseUrl: `${url}/v1`,
      models: [],
      defaults: {},
      silenceSeconds: 120,
      inside: true,
    });
  const engine =
    child?.engine(onStart) ??
    keepEngine({
      ...{ settings: config.engine, onStart, log: (line) => log.warn(`engine: ${line}`) },
      folderOf: artifacts.folder,
    });
  const adapters = keepAdapters({
    ...{ upstreams: config.upstreams, home: config.home, folderOf: artifacts.folder },
    log: (line) => log.warn(`adapters: ${line}`),
  });
  return { upstreams, engine, adapters };
}

/** What users may get from now on, made ready wherever it is served. */
export function putInPlay({ engine, adapters }: Pick<Models, 'engine' | 'adapters'>, routes: readonly StoredRoute[]) {
  const releases = routes.flatMap(({ release, pins = [], tasks = [], open }) => [
    release,
    ...pins.map((pin) => pin.release),
    ...tasks.map((task) => task.release),
    ...(open === null ? [] : [open.candidate]),
  ]);
  engine.inPlay(
    releases.flatMap((release): Placed[] => {
      const checkpoint = engineWeights(release);
      return checkpoint === null ? [] : [{ model: release.model, checkpoint }];
    }),
  );
  adapters.inPlay(releases satisfies readonly Served[]);
}
