/**
 * The process that runs a run: host, pid and when the process started. The pid alone is not enough: in a container that
 * was killed and started again the new process has the old one's host name and pid.
 */
import { hostname } from 'node:os';
import { processStart } from '../store/lock.ts';

export const thisOwner = (): string => `${hostname()} ${process.pid} ${processStart(process.pid)}`;

/** true or false for a process of this machine, null for another's. */
export function ownerAlive(owner: string): boolean | null {
  const [host, pid, ...start] = owner.split(' ');
  if (host !== hostname()) return null;
  return processStart(Number(pid)) === start.join(' ');
}

export function ownerName(owner: string): string {
  const [host, pid] = owner.split(' ');
  return `process ${pid} on ${host}`;
}
