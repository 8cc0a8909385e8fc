/**
 * What lies in a home beside the database: entries that the database refused, of users who are erased or from before what is
 * kept, files of datasets that are no more or never came to be, and copies of artifacts. Every home does its own.
 */
import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { type RejectedLine, thinRejected } from '../collect/rejected.ts';
import { datasetsIn, dropStaleDatasets, removeOlderFile } from '../curate/files.ts';
import { forgetArtifact, goneArtifacts, readDataset } from '../store/datasets.ts';
import { erasedSince, findErased } from '../store/erased.ts';
import type { Store } from '../store/postgres.ts';
import { forgetStamp } from '../store/retention.ts';
import { alone } from './alone.ts';
import { limitsAt, type RetentionSettings } from './retention-settings.ts';

const gatewayHome = /^gateway-\d+$/;

/** The journals of a home: its own, and those of its gateway processes, of which there may be fewer now than there were. */
async function journalsOf(home: string): Promise<string[]> {
  const whole = gatewayHome.test(basename(home)) ? dirname(home) : home;
  const names = await readdir(whole).catch(() => []);
  return [whole, ...names.filter((name) => gatewayHome.test(name)).map((name) => join(whole, name))].map((one) =>
    join(one, 'journal'),
  );
}

/** Returns how many entries and files went. `forgetBefore`: ms since epoch. */
export async function cleanHome(store: Store, artifacts: Artifacts, forgetBefore: number): Promise<number> {
  const { home } = artifacts;
  const thinning = async (lines: readonly RejectedLine[]) => {
    const entries = lines.flatMap(({ line }) => line ?? []);
    const { verdicts } = await findErased(store.pool, entries);
    const went = new Set(entries.filter((_, i) => verdicts[i]));
    const users = await erasedSince(store.pool, Math.min(...lines.map(({ at }) => at)));
    const isErased = ({ line, text }: RejectedLine) =>
      line === null ? users.some((user) => text.includes(user)) : went.has(line);
    return lines.map((one) => one.at < forgetBefore || isErased(one));
  };
  let gone = 0;
  for (const folder of await journalsOf(home)) {
    const turn = await alone(store, `clean ${folder}`, () => thinRejected(folder, thinning));
    gone += turn?.done ?? 0;
  }
  for (const id of await datasetsIn(home)) {
    if (!(await readDataset(store, { id }))?.gone) continue;
    await removeOlderFile(artifacts, id);
    gone++;
  }
  gone += await removeGoneArtifacts(store, artifacts);
  await dropStaleDatasets(home);
  await artifacts.tidy();
  return gone;
}

/** Where whoever retired a dataset was killed before its file went, the next one does it. */
export async function removeGoneArtifacts(store: Store, artifacts: Artifacts): Promise<number> {
  const gone = await goneArtifacts(store);
  for (const { id, artifact } of gone) {
    await artifacts.remove(artifact);
    await forgetArtifact(store, id);
  }
  return gone.length;
}

const everyMs = 10_000;

/** Does it whenever something was erased or forgotten; at the first look too, because this home may have been away. */
export function keepHomeClean(
  store: Store,
  artifacts: Artifacts,
  settings: RetentionSettings,
  warn: (error: unknown) => void,
): { close(): Promise<void> } {
  let seen: string | null = null;
  let running: Promise<void> | null = null;
  const look = async () => {
    const changed = await forgetStamp(store);
    if (changed === seen) return;
    const { day } = limitsAt(settings, Date.now());
    await cleanHome(store, artifacts, day === null ? 0 : Date.parse(day));
    seen = changed;
  };
  // A database that is away is tried again at the next look.
  const soon = () => {
    running ??= look()
      .catch(warn)
      .finally(() => {
        running = null;
      });
  };
  soon();
  const timer = setInterval(soon, everyMs);
  return {
    async close() {
      clearInterval(timer);
      await running;
    },
  };
}
