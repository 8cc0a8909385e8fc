/**
 * Garbage is cleared away by the thread that made it. Little survives a request, so there is little to share out: waking four threads for every
 * collection, in each of two heaps, took a twentieth of all processor time at full load. And V8's helpers have the priority of the process: they
 * took processors from answering to clean up after the recorder, which itself gives way (priority.ts).
 */
import { setFlagsFromString } from 'node:v8';

/** Marking stays shared: V8 does not survive that this changes while it runs (20.20, 22.23 and 24.21 were tried, these five too). */
const shared = [
  'parallel-scavenge',
  'parallel-compaction',
  'parallel-pointer-update',
  'concurrent-sweeping',
  'concurrent-array-buffer-sweeping',
];

/** To be called before other threads begin. */
export function collectAlone(): void {
  for (const flag of shared) setFlagsFromString(`--no-${flag}`);
}
