/**
 * Writes what gateways of other folders under this home left in their journals: another number of processes was started last time, or
 * none were. Nobody else would read them again.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readBacklog } from '../collect/backlog.ts';
import { startRecorder } from '../collect/recorder.ts';
import { lockHome } from '../store/lock.ts';
import type { Child } from './child.ts';
import type { Ground, Part } from './ground.ts';

const folderName = /^gateway-(\d+)$/;
const drainMs = 60_000;

/** Of one of several processes. */
export const childHome = (home: string, number: number): string => join(home, `gateway-${number}`);

/** Folders whose journals this process has to look after: a pure matter of names. */
export function leftHomes(parentHome: string, names: readonly string[], processes: number | null): string[] {
  const others = names.filter((name) => Number(folderName.exec(name)?.[1] ?? 0) > (processes ?? 0));
  return [...(processes === null ? [] : [parentHome]), ...others.map((name) => join(parentHome, name))];
}

export function deliverLeft(ground: Ground, child: Child | null, secret: string): Part {
  const { config, log, stopping } = ground;
  const { databaseUrl } = config;
  const parentHome = child === null ? config.home : join(config.home, '..');
  const homes =
    databaseUrl !== undefined && (child === null || child.isFirst)
      ? leftHomes(parentHome, readdirSync(parentHome), child?.of ?? null)
      : [];

  const deliver = async (home: string) => {
    if (!existsSync(join(home, 'journal')) || (await readBacklog(join(home, 'journal'))).bytes === 0) return;
    // The parent's own folder is locked by the parent, for us.
    const lock = home === parentHome ? null : await lockHome(home);
    try {
      const recorder = await startRecorder({ home, databaseUrl: databaseUrl ?? null, secret, log });
      while (!stopping() && !(await recorder.drain(drainMs)));
      await recorder.close();
    } finally {
      lock?.release();
    }
  };
  const running = (async () => {
    for (const home of homes)
      await deliver(home).catch((error: unknown) =>
        log.warn({ err: error }, `gateway: what is left in ${home} cannot be written now; it stays there`),
      );
  })();
  return {
    close: async () => void (await Promise.race([running, new Promise((done) => setTimeout(done, 3_000).unref())])),
  };
}
