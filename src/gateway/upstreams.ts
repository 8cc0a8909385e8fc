/** The model servers behind the gateway, each with its own connection pool, and which of them a model name goes to. */
import { buildConnector, Pool } from 'undici';
import type { Config, Upstream } from '../config.ts';
import { skipContinue } from './skip-continue.ts';

type Connected = {
  readonly pool: Pool;
  /** Path part of the base URL, e.g. `/v1`. */
  readonly path: string;
  readonly key: string | undefined;
  readonly silenceMs: number;
  readonly defaults: Upstream['defaults'];
};

export type Upstreams = {
  readonly names: readonly string[];
  get(name: string): Connected;
  /** The upstreams to ask for a model, in order: the one that lists it (else the first), then its fallbacks. */
  chain(model: string): readonly string[];
  /** An upstream by name, then its fallbacks; empty when it is not configured. */
  from(name: string): readonly string[];
  close(): Promise<void>;
};

const connectTo = buildConnector({ timeout: 5_000 });
const connect: buildConnector.connector = (options, done) =>
  connectTo(options, (error, socket) => (error === null ? done(null, skipContinue(socket)) : done(error, null)));

export function connectUpstreams(settings: Config['upstreams']): Upstreams {
  const connected = new Map<string, Connected>();
  for (const [name, { baseUrl, key, silenceSeconds, defaults }] of Object.entries(settings)) {
    const url = new URL(baseUrl);
    connected.set(name, {
      pool: new Pool(url.origin, { connections: 512, connect, keepAliveTimeout: 30_000 }),
      path: url.pathname.replace(/\/+$/, ''),
      key,
      silenceMs: silenceSeconds * 1000,
      defaults,
    });
  }
  const names = [...connected.keys()];
  const chains = new Map(names.map((name) => [name, chainFrom(name, settings)]));
  const listed = new Map(
    Object.values(settings).flatMap(({ models }) => models.map((model) => [model, chainFor(model, settings)])),
  );
  const unlisted = chainFor(null, settings);
  return {
    names,
    get: (name) => connected.get(name)!,
    chain: (model) => listed.get(model) ?? unlisted,
    from: (name) => chains.get(name) ?? [],
    close: async () => {
      await Promise.all([...connected.values()].map(({ pool }) => pool.destroy()));
    },
  };
}

/** Null: a model that nobody lists. */
function chainFor(model: string | null, settings: Config['upstreams']): readonly string[] {
  const names = Object.keys(settings);
  const lists = (name: string) => model !== null && settings[name]!.models.includes(model);
  return chainFrom(names.find(lists) ?? names[0], settings);
}

function chainFrom(first: string | undefined, settings: Config['upstreams']): readonly string[] {
  const chain: string[] = [];
  let next = first;
  while (next !== undefined && !chain.includes(next)) {
    chain.push(next);
    next = settings[next]!.fallback;
  }
  return chain;
}
