/**
 * Processor time per part of a running Pawl, from /proc: wall clocks say little on a machine that others use too. Linux only; elsewhere
 * there is nothing to read, and nothing is said.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** Nanoseconds so far, by thread. */
type Threads = ReadonlyMap<string, number>;
export type Reading = { readonly [Part in 'load' | 'upstream' | 'bare' | 'pawl' | 'postgres']: Threads };

const threadsOf = (pid: number): [string, number][] => {
  try {
    return readdirSync(`/proc/${pid}/task`).map((tid) => [
      tid,
      Number(readFileSync(`/proc/${pid}/task/${tid}/schedstat`, 'utf8').split(' ')[0]),
    ]);
  } catch {
    return []; // it has ended meanwhile
  }
};

/** All that descend from these processes. */
function descendants(of: readonly number[]): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
    } catch {
      // It has ended meanwhile.
    }
  }
  const found = new Set(of);
  for (let before = -1; before !== found.size; ) {
    before = found.size;
    for (const [pid, parent] of parents) if (found.has(parent)) found.add(pid);
  }
  return [...found].filter((pid) => !of.includes(pid));
}

export function readProcessors(pids: Readonly<Record<Exclude<keyof Reading, 'postgres'>, number>>): Reading | null {
  if (process.platform !== 'linux') return null;
  const own = (pid: number) => new Map(threadsOf(pid));
  return {
    load: own(pids.load),
    upstream: own(pids.upstream),
    bare: own(pids.bare),
    pawl: own(pids.pawl),
    postgres: new Map(descendants([pids.pawl]).flatMap(threadsOf)),
  };
}

export type PerRequest = {
  readonly load: number;
  readonly upstream: number;
  /** Of Pawl: the thread that answers, the busiest of the others, and the rest (V8, libuv). */
  readonly answering: number;
  readonly recorder: number;
  readonly helpers: number;
  /** Of everything that Pawl has started: the database. */
  readonly postgres: number;
  readonly all: number;
};

/** Microseconds per request between two readings. `answers`: whose main thread it was. */
export function perRequest(
  before: Reading,
  after: Reading,
  requests: number,
  answers: { readonly by: 'bare' | 'pawl'; readonly pid: number },
): PerRequest {
  const spent = (part: keyof Reading): Map<string, number> =>
    new Map([...after[part]].map(([tid, ns]) => [tid, (ns - (before[part].get(tid) ?? 0)) / 1000 / requests]));
  const sum = (values: Iterable<number>): number => [...values].reduce((total, one) => total + one, 0);
  const own = spent(answers.by);
  const answering = own.get(`${answers.pid}`) ?? 0;
  const others = [...own].filter(([tid]) => tid !== `${answers.pid}`).map(([, us]) => us);
  const recorder = Math.max(0, ...others);
  const parts = {
    load: sum(spent('load').values()),
    upstream: sum(spent('upstream').values()),
    answering,
    recorder,
    helpers: sum(others) - recorder,
    postgres: answers.by === 'pawl' ? sum(spent('postgres').values()) : 0,
  };
  return { ...parts, all: sum(Object.values(parts)) };
}
