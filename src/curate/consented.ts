/**
 * What of a dataset may still be learned from. A dataset is never changed, but consent may have been withdrawn since it was
 * made; whoever trains reads it through here. Fails closed: a conversation or a correction that is no longer there is left out,
 * and a pair goes with either of its sides.
 */
import type { Artifacts } from '../artifacts/artifacts.ts';
import { readStandingsIn } from '../store/consents.ts';
import { readCorrectors } from '../store/corrections.ts';
import type { Store } from '../store/postgres.ts';
import type { Dataset } from './dataset.ts';
import { type Line, readLines } from './files.ts';
import { lapsed } from './gates.ts';
import type { PairSide } from './pair.ts';

export async function* consentedLines(
  store: Store,
  artifacts: Artifacts,
  dataset: Pick<Dataset, 'id' | 'agent' | 'hash' | 'artifact' | 'settings' | 'gone'>,
): AsyncGenerator<Line> {
  const { on } = dataset.settings;
  const standings = await readStandingsIn(store, dataset.id);
  const stands = (day: string, trajectory: string) => lapsed(standings.get(`${day} ${trajectory}`), on) === null;
  const sideStands = async ({ from }: PairSide): Promise<boolean> => {
    if ('trajectory' in from) return stands(from.day, from.trajectory);
    const by = (await readCorrectors(store, dataset.agent, [from.identity])).get(from.signal);
    return by !== undefined && lapsed(by, on) === null;
  };
  for await (const line of readLines(artifacts, dataset)) {
    if (line.kind === 'row' ? stands(line.row.day, line.row.trajectory) : await bothStand(line.pair)) yield line;
  }

  async function bothStand({ chosen, rejected }: { readonly chosen: PairSide; readonly rejected: PairSide }) {
    return (await sideStands(chosen)) && (await sideStands(rejected));
  }
}
