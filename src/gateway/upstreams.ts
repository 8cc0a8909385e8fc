/** The model servers behind the gateway, each with its own connection pool, and which of them a model name goes to. */
import { buildConnector, Pool } from 'undici';
import type { Config, Upstream } from '../config.ts';
import type { ThinkingDialect } from '../deploy/release.ts';
import { skipContinue } from './skip-continue.ts';

type Connected = {
  readonly pool: Pool;
  /** Path part of the base URL, e.g. `/v1`. */
  readonly path: string;
  readonly key: string | undefined;
  readonly silenceMs: number;
  readonly defaults: Upstream['defaults'];
  /** How it is told of a thinking budget; null: it cannot be. */
  readonly thinking: ThinkingDialect | null;
};

export type Upstreams = {
  readonly names: readonly string[];
  /** One more, which was not known at the start: Pawl's own engine. */
  add(name: string, settings: Upstream): void;
  get(name: string): Connected;
  /** The upstreams to ask for a model, in order: the one that lists it (else the first), then its fallbacks. */
  chain(model: string): readonly string[];
  /** An upstream by name, then its fallbacks; empty when it is not configured. */
  from(name: string): readonly string[];
  close(): Promise<void>;
};

const connector = buildConnector({ timeout: 5_000 });
const connect: buildConnector.connector = (options, done) =>
  connector(options, (error, socket) => (error === null ? done(null, skipContinue(socket)) : done(error, null)));

export function connectUpstreams(configured: Config['upstreams']): Upstreams {
  const connected = new Map<string, Connected>();
  let settings = configured;
  let chains = chainsOf(settings);
  const connectTo = (name: string, { baseUrl, key, silenceSeconds, defaults, thinking }: Upstream) => {
    const url = new URL(baseUrl);
    connected.set(name, {
      pool: new Pool(url.origin, { connections: 512, connect, keepAliveTimeout: 30_000 }),
      path: url.pathname.replace(/\/+$/, ''),
      key,
      silenceMs: silenceSeconds * 1000,
      defaults,
      thinking: thinking ?? null,
    });
  };
  for (const [name, upstream] of Object.entries(configured)) connectTo(name, upstream);
  return {
    get names() {
      return [...connected.keys()];
    },
    add(name, upstream) {
      connectTo(name, upstream);
      settings = { ...settings, [name]: upstream };
      chains = chainsOf(settings);
    },
    get: (name) => connected.get(name)!,
    chain: (model) => chains.listed.get(model) ?? chains.others,
    from: (name) => chains.from.get(name) ?? [],
    close: async () => {
      await Promise.all([...connected.values()].map(({ pool }) => pool.destroy()));
    },
  };
}

/** Worked out once: every call asks. A model that several list is the first one's. */
function chainsOf(settings: Config['upstreams']) {
  const names = Object.keys(settings);
  const from = new Map(names.map((name) => [name, chainFrom(name, settings)]));
  const listed = new Map<string, readonly string[]>();
  for (const name of names.toReversed()) for (const model of settings[name]!.models) listed.set(model, from.get(name)!);
  return { from, listed, others: from.get(names[0] ?? '') ?? [] };
}

function chainFrom(first: string, settings: Config['upstreams']): readonly string[] {
  const chain: string[] = [];
  let next: string | undefined = first;
  while (next !== undefined && !chain.includes(next)) {
    chain.push(next);
    next = settings[next]!.fallback;
  }
  return chain;
}
