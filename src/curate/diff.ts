/** How two datasets differ: which conversations only one of them has, by kind of task, and what was set or counted differently. Pure. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Dataset } from './dataset.ts';
import type { Line } from './files.ts';

/** What there is to compare of one: conversation → its task type and the hash of its line; hashes of pairs. */
export type Contents = {
  readonly rows: ReadonlyMap<string, { readonly taskType: string; readonly hash: string }>;
  readonly pairs: ReadonlySet<string>;
};

const hashOf = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('base64');

export async function contentsOf(lines: AsyncIterable<Line>): Promise<Contents> {
  const rows = new Map<string, { taskType: string; hash: string }>();
  const pairs = new Set<string>();
  for await (const line of lines) {
    if (line.kind === 'pair') pairs.add(hashOf(line.pair));
    else {
      const { day, trajectory, taskType } = line.row;
      rows.set(`${day} ${trajectory}`, { taskType: taskType ?? 'unknown', hash: hashOf(line.row) });
    }
  }
  return { rows, pairs };
}

const count = z.int().nonnegative();
/** Of the first and of the second. */
const two = <T extends z.ZodType>(of: T) => z.tuple([of, of]);

export const datasetDiff = z.object({
  datasets: two(z.string()),
  /** Conversations by day and id. */
  rows: z.object({
    onlyFirst: z.array(z.string()),
    onlySecond: z.array(z.string()),
    changed: z.array(z.string()),
    same: count,
  }),
  pairs: z.object({ onlyFirst: count, onlySecond: count, same: count }),
  taskTypes: z.record(z.string(), z.object({ onlyFirst: count, onlySecond: count, both: count })),
  /** Those that differ. */
  settings: z.record(z.string(), two(z.union([z.string(), z.number(), z.null()]))),
  funnel: z.array(z.object({ gate: z.string(), entered: two(count.nullable()), passed: two(count.nullable()) })),
});
export type DatasetDiff = z.infer<typeof datasetDiff>;

export function diffDatasets(first: Dataset, second: Dataset, a: Contents, b: Contents): DatasetDiff {
  const onlyFirst = [...a.rows.keys()].filter((key) => !b.rows.has(key));
  const onlySecond = [...b.rows.keys()].filter((key) => !a.rows.has(key));
  const both = [...a.rows.keys()].filter((key) => b.rows.has(key));
  const changed = both.filter((key) => a.rows.get(key)!.hash !== b.rows.get(key)!.hash);
  const types = new Map<string, { onlyFirst: number; onlySecond: number; both: number }>();
  const tally = (taskType: string, where: 'onlyFirst' | 'onlySecond' | 'both') => {
    const row = types.get(taskType) ?? { onlyFirst: 0, onlySecond: 0, both: 0 };
    row[where]++;
    types.set(taskType, row);
  };
  for (const key of onlyFirst) tally(a.rows.get(key)!.taskType, 'onlyFirst');
  for (const key of onlySecond) tally(b.rows.get(key)!.taskType, 'onlySecond');
  for (const key of both) tally(b.rows.get(key)!.taskType, 'both');
  const samePairs = [...a.pairs].filter((pair) => b.pairs.has(pair)).length;
  return {
    datasets: [first.id, second.id],
    rows: { onlyFirst, onlySecond, changed, same: both.length - changed.length },
    pairs: { onlyFirst: a.pairs.size - samePairs, onlySecond: b.pairs.size - samePairs, same: samePairs },
    taskTypes: Object.fromEntries([...types].sort(([x], [y]) => (x < y ? -1 : 1))),
    settings: different(asked(first), asked(second)),
    funnel: [...new Set([...first.funnel, ...second.funnel].map(({ gate }) => gate))].map((gate) => {
      const [one, other] = [first, second].map(({ funnel }) => funnel.find((step) => step.gate === gate));
      return {
        gate,
        entered: [one?.entered ?? null, other?.entered ?? null],
        passed: [one?.passed ?? null, other?.passed ?? null],
      };
    }),
  };
}

type Value = string | number | null;

/** All that was asked for, as against what came of it. */
const asked = ({ settings, seed, spec, agent, since, until }: Dataset): Record<string, Value> => ({
  ...(settings as Record<string, Value>),
  agent,
  'reward spec': spec,
  seed,
  since: new Date(since).toISOString(),
  until: new Date(until).toISOString(),
});

function different(a: Record<string, Value>, b: Record<string, Value>): DatasetDiff['settings'] {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((name) => a[name] !== b[name]);
  return Object.fromEntries(names.map((name) => [name, [a[name] ?? null, b[name] ?? null]]));
}
