/** What an agent may explore and what it has taken of that, for people. */
import type { Config } from '../config.ts';
import { readExploration } from '../store/exploration.ts';
import type { Store } from '../store/postgres.ts';

export type ExploreStatus = {
  readonly agent: string;
  readonly share: number;
  readonly askedThisHour: number;
  readonly perHour: number;
  /** Today is the day of UTC. */
  readonly askedToday: number;
  readonly moneyToday: number;
  /** null: no price is set, so nothing counts as cost. */
  readonly moneyPerDay: number | null;
};

export async function exploreStatus(store: Store, agent: Config['agents'][number]): Promise<ExploreStatus> {
  const { share, perHour, moneyPerDay = null } = agent.explore;
  const { asked: askedToday, askedThisHour, money: moneyToday } = await readExploration(store, agent.name);
  return { agent: agent.name, share, askedThisHour, perHour, askedToday, moneyToday, moneyPerDay };
}
