/** The figures of a run's steps, thinned out to as many as a curve can show: the first, the last, and evenly between. */
import { type Store, storeError } from './postgres.ts';

export type Curves = {
  readonly steps: number[];
  /** By metric; null: not measured at that step, or no finite number. */
  readonly values: Record<string, (number | null)[]>;
};

export const readCurves = async (store: Store, run: string, points: number): Promise<Curves> => {
  const { rows } = await store.pool
    .query<{ step: number; values: Record<string, number | string> }>(
      `select step, "values" from (
         select step, "values", row_number() over (order by step) - 1 as i, count(*) over () as n from pawl.run_steps where run = $1) s
       where i % ceil(n / $2::double precision)::bigint = 0 or i = n - 1 order by step`,
      [run, points],
    )
    .catch((error) => {
      throw storeError(error, `Reading the curves of run ${run}`);
    });
  const names = [...new Set(rows.flatMap(({ values }) => Object.keys(values)))].sort();
  const at = (values: Record<string, number | string>, name: string): number | null => {
    const value = Number(values[name] ?? Number.NaN);
    return Number.isFinite(value) ? value : null;
  };
  return {
    steps: rows.map(({ step }) => step),
    values: Object.fromEntries(names.map((name) => [name, rows.map(({ values }) => at(values, name))])),
  };
};
