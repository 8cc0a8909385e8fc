/**
 * Garbage is cleared away by the thread that made it. Little survives a request, so there is little to share out: waking four threads for every
 * collection, in each of two heaps, took a twentieth of all processor time at full load. And V8's helpers have the priority of the process: they
 * took processors from answering to clean up after the recorder, which itself gives way (priority.ts).
 */
import { setFlagsFromString } from 'node:v8';

/**
 * Marking stays shared: V8 does not survive that this changes while it runs (tried with Node 20.20, 22.23 and 24.21, these three too). So does what
 * a thread stands still for: alone it took up to 78 ms instead of 43, and what a killed process has not recorded grows with it.
 */
const shared = ['parallel-scavenge', 'concurrent-sweeping', 'concurrent-array-buffer-sweeping'];

/** To be called before other threads begin. */
export function collectAlone(): void {
  for (const flag of shared) setFlagsFromString(`--no-${flag}`);
}
