/**
 * Garbage is cleared away by the thread that made it. Little survives a request, so there is little to share out: waking four threads for every
 * collection, in each of two heaps, took a twentieth of all processor time at full load. And V8's helpers have the priority of the process: they
 * took processors from answering to clean up after the recorder, which itself gives way (priority.ts).
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Marking stays shared: V8 does not survive that this changes while it runs (tried with Node 20.20, 22.23 and 24.21, these three too). So does what
 * a thread stands still for: alone it took up to 78 ms instead of 43, and what a killed process has not recorded grows with it.
 */
const shared = ['parallel-scavenge', 'concurrent-sweeping', 'concurrent-array-buffer-sweeping'];

/** How much of what survived may be added before all of the heap is looked through again, bytes outside of it included; V8 takes as little as 10% for a calm program. */
const GROWING_PERCENT = 200;

/** To be called before other threads begin. */
export function collectAlone(): void {
  for (const flag of shared) setFlagsFromString(`--no-${flag}`);
  setFlagsFromString(`--heap-growing-percent=${GROWING_PERCENT}`);
}

/** V8 looks through its whole heap after 64 MB of bytes outside of it, whatever became of them. */
const MOST_BYTES = 16 * 1024 * 1024;

/**
 * Bodies lie outside of V8's heap and make little garbage in it, so it is seldom collected and they stay, dead, until there are so many of them that
 * V8 looks through all it has: 15 to 30 ms in which nobody is answered, every few seconds where conversations are long. Collecting what
 * is young takes a millisecond and gives them back. To be told of bytes that were let go of.
 */
export function openClearing(mostBytes = MOST_BYTES): (bytes: number) => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: { type: 'minor' }) => void;
  setFlagsFromString('--no-expose-gc');
  let bytesLetGo = 0;
  return (bytes) => {
    bytesLetGo += bytes;
    if (bytesLetGo < mostBytes) return;
    bytesLetGo = 0;
    setImmediate(() => collect({ type: 'minor' }));
  };
}
