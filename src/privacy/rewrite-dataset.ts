/**
 * A dataset without the rows of a user who is erased: a new version with everything else, and the old one gone. What cannot be
 * read here (its file is lost, or not what it was) is gone without a successor, because nobody could tell what is in it.
 */
import type { Artifacts } from '../artifacts/artifacts.ts';
import { audit } from '../audit.ts';
import { type DatasetDraft, datasetId, datasetKey } from '../curate/dataset.ts';
import { keepDraft, type Line, openDraft, pairText, readLines, removeOlderFile } from '../curate/files.ts';
import type { FunnelStep } from '../curate/funnel.ts';
import type { PairSide } from '../curate/pair.ts';
import { ArtifactError } from '../errors.ts';
import { inheritPeople, readDataset, readLineage, retireDataset, saveDataset } from '../store/datasets.ts';
import { addErasedDataset } from '../store/erasures.ts';
import type { Store } from '../store/postgres.ts';
import { removeGoneArtifacts } from './clean-home.ts';
import type { ErasedDataset, Erasure } from './erasure.ts';

const because = 'it held conversations of a user who was erased';

/** Whether a line may stay: none of its conversations is among those that go. */
export function stays(line: Line, goes: (day: string, trajectory: string) => boolean): boolean {
  if (line.kind === 'row') return !goes(line.row.day, line.row.trajectory);
  // A correction is about the other side's conversation, and its writer counts among the people of that.
  const fromGone = ({ from }: PairSide) => 'trajectory' in from && goes(from.day, from.trajectory);
  return !fromGone(line.pair.chosen) && !fromGone(line.pair.rejected);
}

/** The last line of the funnel; the lines before say what was chosen once. */
const erasedStep = (entered: number, passed: number): FunnelStep => ({
  gate: 'erased',
  entered,
  passed,
  left: entered === passed ? {} : { 'a user was erased': entered - passed },
});

const countBy = (names: readonly string[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const name of [...names].sort()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
};

export async function rewriteDataset(
  store: Store,
  artifacts: Artifacts,
  { id: erasure, user }: Pick<Erasure, 'id' | 'user'>,
  held: Omit<ErasedDataset, 'replacedBy'>,
): Promise<void> {
  const old = await readDataset(store, { id: held.id });
  if (old === null || old.gone !== null) return;
  const lineage = await readLineage(store, old.id, user);
  const gone = new Set(lineage.filter((line) => line.held).map(({ day, trajectory }) => `${day} ${trajectory}`));
  const goes = (day: string, trajectory: string) => gone.has(`${day} ${trajectory}`);
  const draft = await openDraft(artifacts.home);
  const kept: { readonly taskTypes: string[]; readonly sources: string[] } = { taskTypes: [], sources: [] };
  const retire = async (db: Store['db'], replacedBy: string | null) => {
    await retireDataset(db, old.id, { because, replacedBy });
    await addErasedDataset(db, erasure, { ...held, replacedBy });
    const told = { agent: old.agent, actor: 'pawl', event: 'dataset-retired', subject: old.id, at: Date.now() };
    await audit(db, { ...told, details: { because, replacedBy, erasure } });
  };
  try {
    for await (const line of readable(readLines(artifacts, old))) {
      if (!stays(line, goes)) continue;
      await draft.add(line.kind === 'row' ? JSON.stringify(line.row) : pairText(line.pair));
      if (line.kind === 'row') kept.taskTypes.push(line.row.taskType ?? 'unknown');
      else kept.sources.push(line.pair.source);
    }
    if (kept.taskTypes.length + kept.sources.length === 0)
      await store.db.transaction().execute((db) => retire(db, null));
    else {
      const { id: _, version: __, gone: ___, key: ____, ...rest } = old;
      const about = {
        ...rest,
        funnel: [...old.funnel, erasedStep(old.rows, kept.taskTypes.length)],
        pairs: {
          rows: kept.sources.length,
          sources: countBy(kept.sources),
          funnel: [...old.pairs.funnel, erasedStep(old.pairs.rows, kept.sources.length)],
        },
        taskTypes: countBy(kept.taskTypes),
        rows: kept.taskTypes.length,
        hash: draft.hash(),
      };
      const without: DatasetDraft = { ...about, key: datasetKey(about) };
      const left = lineage.filter((line) => !line.held);
      const artifact = await keepDraft(artifacts, without, draft);
      await saveDataset(store, { ...without, artifact }, left, datasetId, async (db, id) => {
        await inheritPeople(db, old.id, id);
        await retire(db, id);
      });
    }
  } finally {
    await draft.drop();
  }
  await removeOlderFile(artifacts, old.id);
  await removeGoneArtifacts(store, artifacts);
}

/** Nothing, where the file is lost or is not what it was. */
async function* readable(lines: AsyncGenerator<Line>): AsyncGenerator<Line> {
  const first = await lines.next().catch((error: NodeJS.ErrnoException) => {
    // The disk's trouble, or that of whoever keeps artifacts, passes.
    if (error.code !== undefined || (error instanceof ArtifactError && error.retryable)) throw error;
    return null;
  });
  if (first === null || first.done) return;
  yield first.value;
  yield* lines;
}
