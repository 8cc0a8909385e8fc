/**
 * Calls that say themselves which release answers: those of an evaluation. `x-pawl-release: NAME` names it, whether it is in
 * play or not; `x-pawl-origin: evaluation` alone leaves the choice to the routes. Either way the exchange is recorded as an
 * evaluation's, so that nothing is learned from it and no rollout counts it. `x-pawl-origin: judge` is what Pawl's own judges say
 * (score/ask-server.ts), with the same effect. Only keys with the scope `evaluate` may do this, or whose own origin it is: an
 * agent's key must not be able to take its traffic out of the books. So a judge behind a gateway is recorded as one or refused.
 *
 * A release that is not in play is looked up in the database and made ready (its model loaded). Both are remembered for a
 * while and done once however many ask at the same time; whoever does not want to wait longer is told when to come back.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Release } from '../deploy/release.ts';
import { RequestError, StoreError } from '../errors.ts';
import { ComeBackLater } from './admit.ts';
import { one } from './headers.ts';
import type { ClientKey } from './keys.ts';

/** null: whatever the routes say. */
export type Evaluation = { readonly release: Release | null; readonly origin: 'evaluation' | 'judge' };
type Asked = { readonly name: string | null; readonly origin: Evaluation['origin'] };

export type ReadyReleases = {
  /** The agent's release of that name, ready to answer. Throws a RequestError. */
  find(agent: string, name: string): Promise<Release>;
};

const namePattern = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/;

/** null for a call that is just a call. */
export function askedEvaluation(headers: IncomingHttpHeaders, key: ClientKey): Asked | null {
  const name = one(headers['x-pawl-release']);
  const origin = one(headers['x-pawl-origin']);
  if (name === undefined && (origin === undefined || (origin === 'judge' && key.origin === 'judge'))) return null;
  if (!key.scopes.includes('evaluate'))
    throw new RequestError(
      403,
      'missing_scope',
      `Key ${key.name} may not send ${name === undefined ? 'x-pawl-origin' : 'x-pawl-release'}: that needs the scope evaluate, and it has ${key.scopes.join(', ')}. Leave the header out, or make a key that has it: pawl keys create NAME --agent ${key.agent} --scope call,evaluate.`,
    );
  if (origin !== undefined && origin !== 'evaluation' && origin !== 'judge')
    throw new RequestError(
      400,
      'invalid_origin',
      `x-pawl-origin can only be evaluation or judge, not ${JSON.stringify(origin.slice(0, 80))}; any other origin is a key’s own.`,
    );
  if (name !== undefined && !namePattern.test(name))
    throw new RequestError(
      400,
      'invalid_release',
      `x-pawl-release is no name of a release: ${JSON.stringify(name.slice(0, 80))}.`,
    );
  return { name: name ?? null, origin: origin ?? 'evaluation' };
}

export const addressed = async (
  { name, origin }: Asked,
  key: ClientKey,
  releases: ReadyReleases,
): Promise<Evaluation> => ({
  origin,
  release: name === null ? null : await releases.find(key.agent, name),
});

export type ReadyReleasesOptions = {
  readonly read: (agent: string, name: string) => Promise<Release | null>;
  readonly prepare: (release: Release) => Promise<void>;
  readonly waitMs?: number; // 60,000
  readonly keptMs?: number; // 30,000
  readonly now?: () => number;
};

const mostKept = 1000;

export function createReadyReleases(options: ReadyReleasesOptions): ReadyReleases {
  const { read, prepare, waitMs = 60_000, keptMs = 30_000, now = () => performance.now() } = options;
  const kept = new Map<string, { readonly release: Promise<Release>; until: number }>();

  async function makeReady(agent: string, name: string): Promise<Release> {
    const release = await read(agent, name).catch((error: unknown) => {
      if (error instanceof StoreError && error.retryable)
        throw new ComeBackLater(
          503,
          'database_away',
          'The database is away, so this release cannot be looked up.',
          5000,
        );
      throw error;
    });
    if (release === null)
      throw new RequestError(
        404,
        'release_not_found',
        `Agent ${agent} has no release ${name}; \`pawl releases list --agent ${agent}\` shows those that exist.`,
      );
    try {
      await prepare(release);
    } catch (error) {
      throw new ComeBackLater(
        503,
        'release_not_ready',
        `Release ${name} cannot be made ready: ${error instanceof Error ? error.message : String(error)}`,
        5000,
      );
    }
    return release;
  }

  function begin(key: string, agent: string, name: string): Promise<Release> {
    if (kept.size >= mostKept) kept.delete(kept.keys().next().value!);
    const release = makeReady(agent, name);
    const entry = { release, until: Number.POSITIVE_INFINITY };
    kept.set(key, entry);
    release.then(
      () => {
        entry.until = now() + keptMs;
      },
      () => {
        if (kept.get(key) === entry) kept.delete(key);
      },
    );
    return release;
  }

  return {
    find(agent, name) {
      const key = `${agent}\u0000${name}`;
      const found = kept.get(key);
      const release = found !== undefined && found.until > now() ? found.release : begin(key, agent, name);
      return within(release, waitMs, () => {
        const message = `Release ${name} is still being made ready.`;
        return new ComeBackLater(503, 'release_not_ready', message, 5000);
      });
    },
  };
}

async function within<T>(work: Promise<T>, milliseconds: number, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const alarm = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), milliseconds);
  });
  try {
    return await Promise.race([work, alarm]);
  } finally {
    clearTimeout(timer);
  }
}
