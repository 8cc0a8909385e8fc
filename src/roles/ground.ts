/** What every part of a Pawl is built from, whichever parts it has, and how a part waits for the database. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Artifacts } from '../artifacts/artifacts.ts';
import type { Config } from '../config.ts';
import { StoreError } from '../errors.ts';
import type { Port } from '../gateway/port.ts';
import type { Opening } from '../store/opening.ts';
import type { Child } from './child.ts';

/** `gateway` answers agents and records, `worker` scores, trains, evaluates and deploys, `api` is for people and programs. */
export const allRoles = ['gateway', 'worker', 'api'] as const;
export type Role = (typeof allRoles)[number];

export type Ground = {
  readonly config: Config;
  readonly artifacts: Artifacts;
  readonly log: Logger;
  readonly roles: ReadonlySet<Role>;
  /** Names this holding of the home folder and no other. */
  readonly instance: string;
  /** This process among all that share the database, for people: `host:pid:instance`. */
  readonly process: string;
  readonly port: Port;
  /** null: nobody is known as admin here. */
  readonly adminHash: string | null;
  readonly opening: Opening;
  /** Where this is one of several gateway processes on one port. */
  readonly child: Child | null;
  /** Stands for one command and then ends, so that no client will ever come. */
  readonly passing: boolean;
  readonly linesLost: () => number;
  /** Shows a secret that is about to be kept as a hash, and the link that opens the dashboard with it; it is kept only if this resolves. */
  readonly show: (secret: 'admin token' | 'client key', token: string, link?: string) => Promise<void>;
  /** Whether everything that needs the database stands: what it says of keys and routes is what counts. */
  readonly connected: () => boolean;
  /** Why not. */
  readonly problem: () => string | null;
  readonly stopping: () => boolean;
};

/** Something that was started and has to be ended. */
export type Part = { close(): Promise<void> };

const againMs = 1_000;

export function reached<T>(part: T | null): T {
  if (part === null) throw new StoreError('The database has not been reached yet.', { retryable: true });
  return part;
}

/** A database that was there a moment ago and is not now is waited for. */
export async function persist<T>(
  { log, stopping }: Pick<Ground, 'log' | 'stopping'>,
  trouble: string,
  work: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (stopping() || !(error instanceof StoreError && error.retryable)) throw error;
      log.warn({ err: error }, trouble);
      await sleep(againMs);
    }
  }
}

/** In the order given; ended in the reverse one. */
export const together = (parts: readonly Part[]): Part => ({
  async close() {
    for (const part of parts.toReversed()) await part.close();
  },
});
