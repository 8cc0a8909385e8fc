/**
 * Keeps the adapters that users may get loaded where they are served: each upstream with `adapters` in its settings is looked at every few
 * seconds, told to load what is in play and missing, and to unload what nobody wants any more. A server that was restarted has
 * forgotten everything, which the next look finds. An adapter counts as ready once the server has answered a request with it.
 *
 * An adapter, from the first time it is wanted:
 *   wanted      in play, or asked for a while ago; loaded whenever the server does not list it, tried again later where that fails
 *   ready       listed, and it answered; until the server is gone or lists it no more
 *   unwanted    not in play, and not asked for since; unloaded, its files removed, forgotten
 * Those that an earlier process left on the server are found at the first look and unloaded if nobody wants them.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { isMarked } from '../engine/internal-mark.ts';
import { copyAdapter, holdsSame } from './adapter.ts';
import type { Release } from './release.ts';
import { type AdapterServer, ServerGone, vllmServer } from './vllm.ts';

export type Served = Pick<Release, 'upstream' | 'model' | 'checkpoint'>;

export type KeptAdapters = {
  /** Whether it answers now. What is no adapter, or no server's that loads them, always does as far as we know. */
  isReady(release: Served): boolean;
  /** Resolves when it answers; whoever calls at the same time waits for the same load. */
  ready(release: Served): Promise<void>;
  /** What users may get from now on. */
  inPlay(releases: readonly Served[]): void;
  /** Which of those is not loaded, and why. */
  problems(): readonly string[];
  close(): Promise<void>;
};

export type KeepAdaptersOptions = {
  readonly upstreams: Config['upstreams'];
  readonly home: string;
  /** The folder of an artifact on this machine. */
  readonly folderOf: (checkpoint: string) => Promise<string>;
  readonly log: (line: string) => void;
  readonly everyMs?: number; // 2,000
  /** How long one that was asked for, and is not in play, is wanted. */
  readonly lingerMs?: number; // 120,000
  /** The same for one that has just left play: other gateways may not know it yet. */
  readonly graceMs?: number; // 5,000
};

export function keepAdapters(options: KeepAdaptersOptions): KeptAdapters {
  const keepers = new Map<string, Keeper>();
  for (const [name, upstream] of Object.entries(options.upstreams))
    if (upstream.adapters !== undefined) keepers.set(name, keepAt(name, upstream, options));
  const keeperOf = ({ upstream, checkpoint }: Served): Keeper | null =>
    checkpoint === null ? null : (keepers.get(upstream) ?? null);
  return {
    isReady: (release) => keeperOf(release)?.isReady(release.model) ?? true,
    ready: async (release) => keeperOf(release)?.ready(release.model, release.checkpoint!),
    inPlay(releases) {
      for (const [name, keeper] of keepers)
        keeper.inPlay(
          new Map(
            releases
              .filter((release) => release.upstream === name && release.checkpoint !== null)
              .map(({ model, checkpoint }) => [model, checkpoint!]),
          ),
        );
    },
    problems: () => [...keepers.values()].flatMap((keeper) => keeper.problems()),
    close: async () => void (await Promise.all([...keepers.values()].map((keeper) => keeper.close()))),
  };
}

/** `until`: ms since epoch; without end while it is in play. `checkpoint`: null for one that was found there. */
export type Wish = { readonly checkpoint: string | null; readonly until: number };

/** What has to be done for a server that lists these models. */
export function nextFor(
  wishes: ReadonlyMap<string, Wish>,
  listed: Pick<ReadonlyMap<string, string>, 'has'>,
  ready: ReadonlySet<string>,
  now: number,
): { readonly bring: readonly string[]; readonly drop: readonly string[] } {
  const bring: string[] = [];
  const drop: string[] = [];
  for (const [name, { checkpoint, until }] of wishes)
    if (until <= now) drop.push(name);
    else if (checkpoint !== null && !(listed.has(name) && ready.has(name))) bring.push(name);
  return { bring, drop };
}

type Keeper = {
  isReady(name: string): boolean;
  ready(name: string, checkpoint: string): Promise<void>;
  inPlay(wanted: ReadonlyMap<string, string>): void;
  problems(): readonly string[];
  close(): Promise<void>;
};

const longestRetryMs = 60_000;

function keepAt(upstream: string, settings: Config['upstreams'][string], options: KeepAdaptersOptions): Keeper {
  const { home, folderOf, log, everyMs = 2_000, lingerMs = 120_000, graceMs = 5_000 } = options;
  const folder = settings.adapters?.folder ?? join(home, 'adapters');
  const seenAs = (settings.adapters?.seenAs ?? folder).replace(/\/+$/, '');
  const closing = new AbortController();
  const server: AdapterServer = vllmServer(upstream, settings, closing.signal);
  const wishes = new Map<string, Wish>();
  const ready = new Set<string>();
  const bringing = new Map<string, Promise<void>>();
  /** Why the last try failed, and when the next is due. */
  const failed = new Map<string, { readonly why: string; readonly waitMs: number; readonly nextAt: number }>();
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | null = null;
  let hasLooked = false;
  /** What was wrong with the server itself at the last look. */
  let said = '';

  async function load(name: string, checkpoint: string): Promise<void> {
    if (!(await server.models()).has(name)) {
      const adapter = await folderOf(checkpoint);
      // Whoever registered it was asked already; the settings may have changed since.
      if (isMarked(adapter) && !settings.inside)
        throw new Error(
          `it is internal, and upstream ${upstream} is not known as part of the deployment (\`inside: true\` in its settings).`,
        );
      await layOut(adapter, join(folder, name));
      await server.load(name, `${seenAs}/${name}`);
      log(`${name} is loaded at upstream ${upstream}`);
    }
    await server.check(name);
  }

  function bring(name: string, checkpoint: string): Promise<void> {
    const under = bringing.get(name);
    if (under !== undefined) return under;
    const work = load(name, checkpoint)
      .then(
        () => {
          failed.delete(name);
          ready.add(name);
        },
        (error: unknown) => {
          ready.delete(name);
          const why = error instanceof Error ? error.message : String(error);
          const before = failed.get(name);
          if (before?.why !== why && !closing.signal.aborted) log(`${name} is not loaded: ${why}`);
          // A server that comes back is told at once.
          const doubled = before === undefined ? everyMs : Math.min(longestRetryMs, 2 * before.waitMs);
          const waitMs = error instanceof ServerGone ? 0 : doubled;
          failed.set(name, { why, waitMs: Math.max(everyMs, waitMs), nextAt: Date.now() + waitMs });
          throw error;
        },
      )
      .finally(() => bringing.delete(name));
    work.catch(() => {}); // not everybody waits for it
    bringing.set(name, work);
    return work;
  }

  async function drop(name: string, isListed: boolean): Promise<void> {
    ready.delete(name);
    if (isListed) {
      await server.unload(name);
      log(`${name} is unloaded from upstream ${upstream}: nobody is to get it any more`);
    }
    // Wanted again meanwhile: the next look finds it missing.
    if (wishes.get(name)!.until > Date.now()) return;
    wishes.delete(name);
    failed.delete(name);
    await rm(join(folder, name), { recursive: true, force: true });
  }

  /** Finds what an earlier process left: only at the first look, for later ones may be another gateway's. */
  function adopt(listed: ReadonlyMap<string, string>): void {
    for (const [name, root] of listed)
      if (root === `${seenAs}/${name}` && !wishes.has(name))
        wishes.set(name, { checkpoint: null, until: Date.now() + graceMs });
  }

  async function look(): Promise<void> {
    if (hasLooked && wishes.size === 0) return;
    try {
      const listed = await server.models();
      if (!hasLooked) adopt(listed);
      hasLooked = true;
      for (const name of ready) if (!listed.has(name)) ready.delete(name);
      const now = Date.now();
      const next = nextFor(wishes, listed, ready, now);
      for (const name of next.bring)
        if ((failed.get(name)?.nextAt ?? 0) <= now) void bring(name, wishes.get(name)!.checkpoint!);
      // One that is just being loaded goes at a later look: others must not wait for it.
      const drops = next.drop.filter((name) => !bringing.has(name)).map((name) => drop(name, listed.has(name)));
      const dropped = await Promise.allSettled(drops);
      for (const one of dropped) if (one.status === 'rejected') throw one.reason;
      said = '';
    } catch (error) {
      // One that is merely slow still has what it had.
      if (error instanceof ServerGone) ready.clear();
      const why = error instanceof Error ? error.message : String(error);
      if (why !== said && !closing.signal.aborted) log(why);
      said = why;
    }
  }

  const lookNow = (): void => {
    if (closing.signal.aborted) return;
    timer ??= setInterval(lookNow, everyMs).unref();
    looking ??= look().finally(() => {
      looking = null;
    });
  };

  const wish = (name: string, checkpoint: string, until: number): void => {
    wishes.set(name, { checkpoint, until: Math.max(until, wishes.get(name)?.until ?? 0) });
  };

  return {
    isReady: (name) => ready.has(name),
    async ready(name, checkpoint) {
      wish(name, checkpoint, Date.now() + lingerMs);
      lookNow();
      if (ready.has(name)) return;
      const before = failed.get(name);
      // What the server has just refused it is not asked again for every call that wants it.
      if (before !== undefined && before.nextAt > Date.now() && !bringing.has(name)) throw new Error(before.why);
      await bring(name, checkpoint);
    },
    inPlay(wanted) {
      for (const [name, { checkpoint, until }] of wishes)
        if (until === Number.POSITIVE_INFINITY && !wanted.has(name))
          wishes.set(name, { checkpoint, until: Date.now() + graceMs });
      for (const [name, checkpoint] of wanted) wish(name, checkpoint, Number.POSITIVE_INFINITY);
      lookNow();
    },
    problems: () =>
      [...wishes].flatMap(([name, { until }]) => {
        const why = said || failed.get(name)?.why;
        const isMissing = until === Number.POSITIVE_INFINITY && !ready.has(name);
        return isMissing && why !== undefined ? [`${name} is not loaded at upstream ${upstream}: ${why}`] : [];
      }),
    async close() {
      closing.abort();
      clearInterval(timer);
      await looking;
      await Promise.allSettled(bringing.values());
    },
  };
}

/** All at once, for the server may look at any time; what is there already stays. */
async function layOut(adapter: string, at: string): Promise<void> {
  if (await holdsSame(adapter, at)) return;
  await mkdir(join(at, '..'), { recursive: true });
  const draft = `${at}.${process.pid}-${randomBytes(4).toString('hex')}`;
  try {
    await copyAdapter(adapter, draft);
    await rename(draft, at).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
      // Another gateway's, made meanwhile; or what somebody spoilt.
      if (await holdsSame(adapter, at)) return;
      await rm(at, { recursive: true, force: true });
      await rename(draft, at);
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}
