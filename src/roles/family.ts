/**
 * `pawl gateway --processes N`: the parent of N gateway processes on one port. It answers nobody itself. Connections are handed to the
 * children in turn (Node's cluster), each of which has a folder of its own under the home (`gateway-1`, …) with its own journal; one that
 * dies is started again in the same folder, and writes what it had left. The parent has the one engine, and the figures of all.
 */
import cluster, { type Worker } from 'node:cluster';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { AggregatorRegistry } from 'prom-client';
import { openArtifacts } from '../artifacts/open.ts';
import type { Config } from '../config.ts';
import { keepEngine } from '../engine/keep.ts';
import { ConfigError } from '../errors.ts';
import { keepAddress } from '../store/address.ts';
import { lockHome } from '../store/lock.ts';
import { childVariable } from './child.ts';
import { healthOfAll } from './family-health.ts';
import type { FromChild, FromParent, Member } from './family-words.ts';

export type Family = {
  readonly url: string;
  /** Resolves when every child has answered what is in flight, written it down and ended. */
  close(): Promise<void>;
  /** Ends them where they stand. */
  kill(): void;
};

const answerMs = 1_000;
const firstWaitMs = 100;
const longestWaitMs = 5_000;
/** One that lived this long was well. */
const wellMs = 10_000;

type Place = { readonly number: number; worker: Worker; startedAt: number; waitMs: number };

export async function startFamily(
  config: Config,
  log: Logger,
  { count, say }: { readonly count: number; readonly say: (text: string) => void },
): Promise<Family> {
  const lock = await lockHome(config.home);
  const artifacts = openArtifacts(config);
  const places: Place[] = [];
  const asked = new Map<number, (member: Member) => void>();
  let tickets = 0;
  let closing = false;
  let engineUrl: string | null = null;
  const send = ({ worker }: Place, message: FromParent) => {
    // One that has just died is not told; its end is heard of by itself.
    if (worker.isConnected()) worker.send(message, () => {});
  };
  const engine = keepEngine({
    settings: config.engine,
    onStart(url) {
      engineUrl = url;
      for (const place of places) send(place, { kind: 'engine', url });
    },
    log: (line) => log.warn(`engine: ${line}`),
    folderOf: artifacts.folder,
  });

  const memberOf = (place: Place): Promise<Member | null> =>
    new Promise((resolve) => {
      const ticket = ++tickets;
      const late = setTimeout(() => {
        asked.delete(ticket);
        resolve(null);
      }, answerMs);
      asked.set(ticket, (member) => {
        clearTimeout(late);
        asked.delete(ticket);
        resolve(member);
      });
      send(place, { kind: 'how-are-you', ticket });
    });
  const members = () =>
    Promise.all(places.map(async (place) => [place.number, await memberOf(place)] as [number, Member | null]));
  const answers = {
    // By the name of the parent, which has the home that commands look at.
    health: async () => ({
      ...healthOfAll(new Map((await members()).map(([n, member]) => [n, member?.health ?? null]))),
      instance: lock.instance,
    }),
    async figures() {
      const known = (await members()).flatMap(([, member]) => (member === null ? [] : [member.figures]));
      return AggregatorRegistry.aggregate(known).metrics();
    },
  };

  const heard = (place: Place, message: FromChild) => {
    const answer = (ticket: number, work: Promise<unknown>) =>
      void work.then(
        (value) => send(place, { kind: 'answer', ticket, value }),
        (error: Error) => send(place, { kind: 'answer', ticket, problem: error.message }),
      );
    if (message.kind === 'member') asked.get(message.ticket)?.(message.member);
    else if (message.kind === 'ask') answer(message.ticket, answers[message.what]());
    else if (message.kind === 'load') answer(message.ticket, engine.ready(message.placed));
    else if (message.kind === 'in-play') engine.inPlay(message.placed);
  };

  const begin = (place: Place) => {
    place.worker = cluster.fork({ [childVariable]: `${place.number}/${count}` });
    place.startedAt = Date.now();
    place.worker.on('error', () => {});
    place.worker.on('message', (message: FromChild) => heard(place, message));
    place.worker.once('online', () => {
      if (engineUrl !== null) send(place, { kind: 'engine', url: engineUrl });
    });
    return place.worker;
  };
  /** From the time it is up. */
  const keep = (place: Place) => {
    place.worker.once('exit', async (code, signal) => {
      if (closing) return;
      log.warn(`gateway: process ${place.number} ended with ${signal ?? code}, and is started again`);
      if (Date.now() - place.startedAt > wellMs) place.waitMs = firstWaitMs;
      await sleep(place.waitMs);
      place.waitMs = Math.min(longestWaitMs, 2 * place.waitMs);
      if (closing) return;
      begin(place);
      keep(place);
    });
  };
  const isUp = (worker: Worker): Promise<string> =>
    new Promise((resolve, reject) => {
      worker.on('message', (message: FromChild) => {
        if (message.kind === 'up') resolve(message.url);
        if (message.kind === 'failed') reject(new ConfigError(message.message));
      });
      worker.once('exit', (code, signal) =>
        reject(new ConfigError(`A gateway process ended with ${signal ?? code} before it could answer.`)),
      );
    });
  const ended = ({ worker }: Place): Promise<void> =>
    worker.isDead() ? Promise.resolve() : new Promise((resolve) => void worker.once('exit', () => resolve()));
  const close = async () => {
    closing = true;
    const all = Promise.all(places.map(ended));
    for (const place of places) send(place, { kind: 'stop' });
    await all;
    await engine.close();
    lock.release();
  };

  try {
    const start = async (number: number): Promise<string> => {
      const place = { number, startedAt: 0, waitMs: firstWaitMs } as Place;
      places.push(place);
      const url = await isUp(begin(place));
      keep(place);
      return url;
    };
    // The first may have to make the database's schema, and whatever port 0 gives it is the others' too.
    const url = await start(1);
    if (count > 1) say(`Starting ${count - 1} more …`);
    await Promise.all(Array.from({ length: count - 1 }, (_, i) => start(i + 2)));
    keepAddress(config.home, { url, instance: lock.instance });
    return {
      url,
      close,
      kill() {
        closing = true;
        for (const { worker } of places) worker.process.kill('SIGKILL');
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}
