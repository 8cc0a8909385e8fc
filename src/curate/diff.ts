/** How two datasets differ: which conversations only one of them has, by kind of task, and what was set or counted differently. Pure. */
import { createHash } from 'node:crypto';
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

type Two<T> = readonly [T, T];
export type DatasetDiff = {
  readonly datasets: Two<string>;
  readonly rows: {
    readonly onlyFirst: string[];
    readonly onlySecond: string[];
    readonly changed: string[];
    readonly same: number;
  };
  readonly pairs: { readonly onlyFirst: number; readonly onlySecond: number; readonly same: number };
  readonly taskTypes: Readonly<
    Record<string, { readonly onlyFirst: number; readonly onlySecond: number; readonly both: number }>
  >;
  /** Those that differ. */
  readonly settings: Readonly<Record<string, Two<unknown>>>;
  readonly funnel: readonly {
    readonly gate: string;
    readonly entered: Two<number | null>;
    readonly passed: Two<number | null>;
  }[];
};

export function diffDatasets(first: Dataset, second: Dataset, a: Contents, b: Contents): DatasetDiff {
  const onlyFirst = [...a.rows.keys()].filter((key) => !b.rows.has(key));
  const onlySecond = [...b.rows.keys()].filter((key) => !a.rows.has(key));
  const both = [...a.rows.keys()].filter((key) => b.rows.has(key));
  const changed = both.filter((key) => a.rows.get(key)!.hash !== b.rows.get(key)!.hash);
  const types = new Map<string, { onlyFirst: number; onlySecond: number; both: number }>();
  const count = (taskType: string, where: 'onlyFirst' | 'onlySecond' | 'both') => {
    const row = types.get(taskType) ?? { onlyFirst: 0, onlySecond: 0, both: 0 };
    row[where]++;
    types.set(taskType, row);
  };
  for (const key of onlyFirst) count(a.rows.get(key)!.taskType, 'onlyFirst');
  for (const key of onlySecond) count(b.rows.get(key)!.taskType, 'onlySecond');
  for (const key of both) count(b.rows.get(key)!.taskType, 'both');
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

/** All that was asked for, as against what came of it. */
const asked = ({ settings, seed, spec, agent, since, until }: Dataset): Record<string, unknown> => ({
  ...settings,
  agent,
  'reward spec': spec,
  seed,
  since: new Date(since).toISOString(),
  until: new Date(until).toISOString(),
});

function different(a: Record<string, unknown>, b: Record<string, unknown>): Record<string, Two<unknown>> {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((name) => a[name] !== b[name]);
  return Object.fromEntries(names.map((name) => [name, [a[name] ?? null, b[name] ?? null]]));
}
