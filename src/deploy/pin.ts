/** Pins a client key or a user to one release, or lets them go: they get it whatever is rolled out, and no rollout counts them. */
import { ConflictError, NotFoundError } from '../errors.ts';
import { listPins, type Pin, putPin, removePin } from '../store/pins.ts';
import type { Store } from '../store/postgres.ts';
import { audit } from './audit.ts';
import type { Release } from './release.ts';

/** Gateways look at each of them in memory. */
const mostPins = 1000;

export type Pinned = Pick<Pin, 'kind' | 'value'>;

export async function pin(store: Store, release: Release, who: Pinned, actor: string, now: number): Promise<void> {
  const { agent, id, name } = release;
  await store.db.transaction().execute(async (transaction) => {
    await putPin(transaction, { agent, ...who, release: id, by: actor, at: now });
    await audit(transaction, {
      agent,
      actor,
      event: 'release-pinned',
      subject: id,
      details: { name, ...who },
      at: now,
    });
    if ((await listPins({ db: transaction }, agent)).length >= mostPins)
      throw new ConflictError(`Agent ${agent} has ${mostPins} pins; remove some first.`);
  });
}

export async function unpin(store: Store, agent: string, who: Pinned, actor: string, now: number): Promise<void> {
  await store.db.transaction().execute(async (transaction) => {
    if (!(await removePin(transaction, { agent, ...who })))
      throw new NotFoundError(`This ${who.kind} of agent ${agent} is not pinned.`);
    await audit(transaction, { agent, actor, event: 'release-unpinned', subject: agent, details: who, at: now });
  });
}
