/**
 * Flags: switches of an agent for what happens by itself, turned by a person at once and everywhere. Each has one reader, which asks the
 * database where it acts, or hears of it with the routes. Another flag is a line here and a reader.
 */

import { putFlag, readFlags, type StoredFlag } from '../store/flags.ts';
import type { Store } from '../store/postgres.ts';
import { audit } from './audit.ts';

/** What goes on while it is on. */
export const flags = {
  exploration: 'further answers are asked for after users have theirs (gateway/explorer.ts)',
  shadow: 'candidates in shadow are asked what users ask (gateway/shadower.ts)',
  rollouts:
    'rollouts advance and are promoted by themselves; off, they hold, and a failing check still takes back (deploy/reconcile.ts)',
  routing: 'types of task go to the release that was measured to be better at them (deploy/routes.ts)',
} as const;
export type FlagName = keyof typeof flags;
export const flagNames = Object.keys(flags) as FlagName[];

export type Flag = { readonly name: FlagName; readonly governs: string; readonly isOn: boolean } & Partial<
  Pick<StoredFlag, 'by' | 'reason' | 'at'>
>;

export async function listFlags(store: Store, agent: string): Promise<Flag[]> {
  const turned = new Map((await readFlags(store, agent)).map((flag) => [flag.name, flag]));
  return flagNames.map((name) => {
    const { isOn = true, by, reason, at } = turned.get(name) ?? {};
    return { name, governs: flags[name], isOn, ...(by === undefined ? {} : { by, reason: reason!, at: at! }) };
  });
}

export type Turn = Pick<StoredFlag, 'agent' | 'isOn' | 'by' | 'reason' | 'at'> & { readonly name: FlagName };

/** False where it stood so already. */
export const turnFlag = (store: Store, { agent, name, isOn, by, reason, at }: Turn): Promise<boolean> =>
  store.db.transaction().execute(async (db) => {
    const event = isOn ? 'flag-on' : 'flag-off';
    const before = (await readFlags({ db }, agent)).find((flag) => flag.name === name)?.isOn ?? true;
    if (before === isOn) return false;
    await audit(db, { agent, actor: by, event, subject: name, details: { reason }, at });
    await putFlag(db, { agent, name, isOn, by, reason, at });
    return true;
  });
