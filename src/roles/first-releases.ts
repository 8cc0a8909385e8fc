/**
 * Asks what is to be an agent's first release whether it fits, and lets it serve if it does (deploy/first-release.ts): beside the
 * gateway, which answers meanwhile that nobody is there yet, at its engine, once that has loaded it.
 *
 * One gateway of a database asks at a time, and what one found since the others began is not asked again by them. What does not fit
 * stays held: a person lets it through, has it checked anew (`pawl evaluate compat`), or the next start asks again. An engine
 * that cannot load it, or gives no answer, is asked until it does. Killed at any point, the next start finds what was found
 * until then, and asks for the rest.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type First, firstAsked, type Held, letServe } from '../deploy/first-release.ts';
import { mustFit, unfitCommand, whyNot } from '../deploy/fit.ts';
import type { Release } from '../deploy/release.ts';
import { UnfitError } from '../errors.ts';
import { type Door, withDoor } from '../evaluate/door.ts';
import { sendJson } from '../gateway/error-shape.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { openPort } from '../gateway/port.ts';
import { readCompatibility } from '../store/compatibility.ts';
import { leading } from '../store/lead.ts';
import type { Store } from '../store/postgres.ts';
import { servingRelease } from '../store/releases.ts';
import type { Part } from './ground.ts';

const lookEveryMs = 5_000;
const closeMs = 3_000;
/** A server that loaded it and gave no answer is asked again after a minute, two, four …, an hour at most. */
const againMs = 60_000;
const longestMs = 3_600_000;

export type FirstParts = {
  readonly store: Store;
  readonly log: Logger;
  /** This process among all that share the database. */
  readonly process: string;
  /** By agent; what the gateway tells its callers. */
  readonly held: Map<string, Held>;
  readonly load: (release: Release) => Promise<void>;
  readonly gateway: Pick<Gateway, 'handle'>;
};

export function holdFirst(held: FirstParts['held'], waiting: readonly First[]): void {
  for (const { agent, release, server, asked } of waiting)
    held.set(agent.name, {
      isUnfit: false,
      sentence: `Release ${release.name} of agent ${agent.name} gets its first user once it was asked whether it fits ${server}: ${asked}.`,
    });
}

export function askFirst(parts: FirstParts, waiting: readonly First[]): Part {
  const { store, log, process, held, load } = parts;
  const since = Date.now();
  const stop = new AbortController();
  const silences = new Map<string, number>();
  let up = true;
  const hold = ({ agent }: First, isUnfit: boolean, sentence: string) => {
    if (held.get(agent.name)?.sentence !== sentence) log.warn(sentence);
    held.set(agent.name, { isUnfit, sentence });
  };

  /** Whether it is to be asked now. */
  const isDue = async (first: First): Promise<boolean> => {
    const { agent, release, server } = first;
    if ((await servingRelease(store, agent.name)) !== null) {
      held.delete(agent.name);
      return false;
    }
    const found = await readCompatibility(store, { agent: agent.name, release: release.name });
    if (found === null || found.at < since) return true;
    if (found.verdict === 'fail') {
      const wayOut = `\`${unfitCommand(release)}\` lets it serve all the same; the next start asks again.`;
      hold(first, true, `${whyNot(release.name, server, found)} ${wayOut}`);
      return false;
    }
    if (found.verdict !== 'unmeasured') return true; // it fits, and only has to be let in
    const wait = Math.min(longestMs, againMs * 2 ** Math.max(0, (silences.get(agent.name) ?? 0) - 1));
    return Date.now() - found.at >= wait;
  };
  const ask = async (first: First, ended: AbortSignal): Promise<void> => {
    const { agent, release, server } = first;
    try {
      await unless(ended, load(release));
    } catch (error) {
      ended.throwIfAborted();
      return hold(
        first,
        false,
        `Release ${release.name} gets no user: ${server} cannot load it. ${(error as Error).message}`,
      );
    }
    const through = <T>(use: (door: Door) => Promise<T>): Promise<T> =>
      withOwnDoor(parts.gateway, (url) => withDoor(store, { agent: agent.name, url, signal: ended }, use));
    try {
      await mustFit({ store, upstreams: {}, withDoor: through, signal: ended }, agent, release, firstAsked);
    } catch (error) {
      if (!(error instanceof UnfitError)) throw error;
      if (error.retryable) {
        silences.set(agent.name, (silences.get(agent.name) ?? 0) + 1);
        hold(first, false, error.message);
      }
      return;
    }
    ended.throwIfAborted();
    if (await letServe(store, release))
      log.info(`Release ${release.name} fits ${server}, and serves agent ${agent.name}.`);
  };
  const look = async (first: First): Promise<void> => {
    if (!(await isDue(first))) return;
    await leading(store, 'pawl first releases', process, async ({ lost }) => {
      // Another may have asked it while this one waited for the database.
      if (await isDue(first)) await ask(first, AbortSignal.any([stop.signal, lost]));
    });
    await isDue(first);
  };
  const run = async (): Promise<void> => {
    while (!stop.signal.aborted && waiting.some(({ agent }) => held.has(agent.name))) {
      for (const first of waiting) {
        if (!held.has(first.agent.name) || stop.signal.aborted) continue;
        try {
          await look(first);
          up = true;
        } catch (error) {
          if (up && !stop.signal.aborted) log.warn({ err: error }, 'whether the first releases fit is asked later');
          up = false;
        }
      }
      await sleep(lookEveryMs, undefined, { signal: stop.signal, ref: false }).catch(() => {});
    }
  };
  const running = run();
  return {
    async close() {
      stop.abort(new Error('Pawl is stopping.'));
      await Promise.race([running, sleep(closeMs, undefined, { ref: false })]);
    },
  };
}

/** Of this process alone: behind the port of several, others answer as well, which may not know the key yet. */
async function withOwnDoor<T>(gateway: FirstParts['gateway'], use: (url: string) => Promise<T>): Promise<T> {
  const port = await openPort({ host: '127.0.0.1', port: 0 }, () => ({ status: 'ok' }));
  port.answer((request, response) => {
    if (!gateway.handle(request, response)) sendJson(response, 404, {});
  });
  try {
    return await use(port.url);
  } finally {
    await port.close();
  }
}

function unless<T>(ended: AbortSignal, work: Promise<T>): Promise<T> {
  ended.throwIfAborted();
  const over = new Promise<never>((_, reject) => {
    ended.addEventListener('abort', () => reject(ended.reason), { once: true });
  });
  return Promise.race([work, over]);
}
