/** How far a turn's stage is, as the process that does it says in the database. */
import type { Store } from '../store/postgres.ts';
import { listProcesses } from '../store/processes.ts';
import type { Progress } from './runner.ts';
import type { StageName } from './turn.ts';

export async function progressElsewhere({ pool }: Pick<Store, 'pool'>, agent: string): Promise<Progress | null> {
  const found = (await listProcesses(pool))
    .filter(({ isAlive }) => isAlive)
    .flatMap(({ doing }) => doing)
    .find((one) => one.agent === agent);
  return found === undefined ? null : { stage: found.stage as StageName, share: found.share, text: found.text };
}
