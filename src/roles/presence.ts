/** Says every few seconds in the database that this process is there, what it is and how it is; and finds gateways among the others. */
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config.ts';
import type { Store } from '../store/postgres.ts';
import {
  type Doing,
  listProcesses,
  type ProcessRecord,
  removeProcess,
  sayEveryMs,
  sayPresent,
} from '../store/processes.ts';
import { version } from '../version.ts';
import type { Ground, Part } from './ground.ts';

const closeMs = 2_000;

/** The machine and the folder: one that starts again is the same. */
export const processId = ({ home }: Pick<Config, 'home'>): string => `${hostname()}:${resolve(home)}`;

/** What others may call: the address listened on, by the machine's name where that is every address. */
export const addressOf = (url: string, host: string): string =>
  url.replace('//0.0.0.0:', `//${host}:`).replace('//[::]:', `//${host}:`);

const isLocal = (address: string): boolean => /^http:\/\/(127\.|localhost[:/]|\[::1\])/.test(address);

/** Whether a process on `host` can call it. */
export const isReachable = (host: string, { isAlive, address, host: on }: ProcessRecord): boolean =>
  isAlive && address !== null && (on === host || !isLocal(address));

/** A gateway that answers a process on `host`: one of the same machine first. */
export function gatewayFor(host: string, processes: readonly ProcessRecord[]): string | null {
  const gateways = processes.filter((one) => one.roles.includes('gateway') && isReachable(host, one));
  return (gateways.find(({ host: on }) => on === host) ?? gateways[0])?.address ?? null;
}

/** A gateway, where a worker is there too: an installation that can do what it is asked. */
export async function findServing(store: Store): Promise<string | null> {
  const processes = await listProcesses(store.pool);
  const works = processes.some(({ isAlive, roles }) => isAlive && roles.includes('worker'));
  return works ? gatewayFor(hostname(), processes) : null;
}

export const findGateway = async (store: Store): Promise<string | null> =>
  gatewayFor(hostname(), await listProcesses(store.pool));

export async function startPresence(
  { config, roles, port, log }: Ground,
  store: Store,
  now: { readonly problems: () => readonly string[]; readonly doing: () => readonly Doing[] },
): Promise<Part> {
  const id = processId(config);
  const about = {
    ...{ id, roles: [...roles], host: hostname(), pid: process.pid, version, startedAt: new Date() },
    address: config.address ?? addressOf(port.url, hostname()),
  };
  let up = true;
  const say = async () => {
    try {
      await sayPresent(store, { ...about, problems: now.problems(), doing: now.doing() });
      up = true;
    } catch (error) {
      if (up) log.warn({ err: error }, 'the database is not told that this process is there');
      up = false;
    }
  };
  await say();
  let running: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    running = running.then(say);
  }, sayEveryMs);
  return {
    async close() {
      clearInterval(timer);
      const goodbye = running.then(() => removeProcess(store, id)).catch(() => {});
      await Promise.race([goodbye, sleep(closeMs, undefined, { ref: false })]);
    },
  };
}
