/** What became of a conversation: the datasets it is in, the runs that learned from those, and the releases they made. */
import { type Store, storeError } from './postgres.ts';

export type Lineage = {
  readonly datasets: readonly { readonly id: string; readonly position: number; readonly score: number }[];
  readonly runs: readonly { readonly id: string; readonly status: string; readonly dataset: string }[];
  readonly releases: readonly { readonly name: string; readonly run: string; readonly serving: boolean }[];
};

const most = 100;

export const readTrajectoryLineage = async (store: Store, agent: string, trajectory: string): Promise<Lineage> => {
  const asked = <Row extends object>(text: string, ...values: unknown[]) =>
    store.pool.query<Row>(`${text} limit ${most}`, values).then(({ rows }) => rows);
  try {
    const datasets = await asked<Lineage['datasets'][number]>(
      `select r.dataset as id, min(r.position) as position, max(r.score) as score from pawl.dataset_rows r
       where r.trajectory = $1 and r.agent = $2 group by r.dataset order by r.dataset`,
      ...[trajectory, agent],
    );
    const runs = await asked<Lineage['runs'][number]>(
      `select id, status, settings ->> 'dataset' as dataset from pawl.runs
       where agent = $1 and settings ->> 'dataset' = any($2::text[]) order by created_at desc`,
      ...[agent, datasets.map(({ id }) => id)],
    );
    const releases = await asked<Lineage['releases'][number]>(
      `select r.name, r.run, coalesce(o.release = r.id, false) as serving from pawl.releases r
       left join pawl.routes o on o.agent = r.agent where r.agent = $1 and r.run = any($2::text[]) order by r.created_at desc`,
      ...[agent, runs.map(({ id }) => id)],
    );
    return { datasets, runs, releases };
  } catch (error) {
    throw storeError(error, `Reading what became of trajectory ${trajectory}`);
  }
};
