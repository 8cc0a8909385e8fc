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

/** One tick of /proc/PID/stat is a hundredth of a second wherever Node runs. */
const ticksPerSecond = 100;

/**
 * Seconds of processor time of everything that this process has started and that is not itself: the database. A server process that has
 * ended counts where its parent has waited for it. null where there is no /proc.
 */
export function startedSeconds(): number | null {
  if (process.platform !== 'linux') return null;
  const ticksOf = (pid: number): number => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0); // utime, stime, and those of ended children
    } catch {
      return 0; // it has ended meanwhile, and its parent counts it
    }
  };
  return descendants([process.pid]).reduce((sum, pid) => sum + ticksOf(pid), 0) / ticksPerSecond;
}

/** Seconds by the clock and of processor time that some work takes: of this process, and of the database it has started. */
export async function timesOf(work: () => Promise<void>): Promise<Times> {
  const [began, used, started] = [performance.now(), process.cpuUsage(), startedSeconds()];
  await work();
  const { user, system } = process.cpuUsage(used);
  return {
    clock: (performance.now() - began) / 1000,
    own: (user + system) / 1e6,
    server: started === null ? null : startedSeconds()! - started,
  };
}
export type Times = { readonly clock: number; readonly own: number; readonly server: number | null };

export const timesText = ({ clock, own, server }: Times): string =>
  `${clock.toFixed(1)} s, ${own.toFixed(1)} s of processor time${server === null ? '' : ` and ${server.toFixed(1)} s of the database's`}`;

/** How much longer it took for so many times as much, brought to ten times as much. */
export function growthOf(small: Times, large: Times, times: number) {
  const growth = (of: keyof Times): number | null => {
    const [before, after] = [small[of], large[of]];
    return before === null || after === null ? null : Number(((after / before) * (10 / times)).toFixed(2));
  };
  return { growth: growth('clock'), cpu_growth: growth('own'), server_cpu_growth: growth('server') };
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
