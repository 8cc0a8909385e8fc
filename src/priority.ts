/**
 * How a thread gets only what nobody else wants. Being nice is not that: since Linux 6.6 whoever runs may finish its slice of some
 * milliseconds, however nice, and who answers waits for it. The policy that was made for it (SCHED_IDLE) gives way at once. Node has no call for
 * it; util-linux and BusyBox have a program, and without that it stays with niceness.
 */
import { execFile } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/** Where niceness is a thread's own and not the process's. */
export const isPerThread = process.platform === 'linux';

let known: boolean | null = null;
/** Whether this process may take back what it gave up: root may, and whoever has CAP_SYS_NICE. Found out by trying. */
export function mayReturn(): boolean {
  known ??= isPerThread && tryReturn();
  return known;
}

function tryReturn(): boolean {
  try {
    const niceness = getPriority();
    if (niceness >= 19) return false;
    setPriority(niceness + 1);
    setPriority(niceness);
    return true;
  } catch {
    return false;
  }
}

export const thisThread = (): number => Number(readlinkSync('/proc/thread-self').split('/').at(-1));

const SCHED_IDLE = '5';
/** The policy is the 41st field; the second, a name, may hold anything and ends with the last bracket. */
export function isIdle(): boolean {
  const stat = readFileSync('/proc/thread-self/stat', 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[38] === SCHED_IDLE;
}

/**
 * Of a thread, or of a process with one. Resolves with whether it worked. Programs inherit the policy of the thread that starts them, so one
 * that is idle had better have this done by another.
 */
export const setIdle = (id: number, on: boolean): Promise<boolean> =>
  new Promise((resolve) => {
    const policy = on ? '-i' : '-o'; // BusyBox knows the short forms only
    execFile('chrt', [policy, '-p', '0', String(id)], { timeout: 5000 }, (error) => resolve(error === null));
  });
