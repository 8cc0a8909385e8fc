/**
 * Lets the embedded database's work for the recorder wait while the gateway answers. Being nice is not enough on Linux:
 * each backend is a session of its own, and with autogroups a session's share is what its group is given, whatever the
 * niceness of the processes in it. So the group is made nice. Without autogroups the file is not there, and niceness,
 * which backends inherit from the server (embedded.ts), does it alone.
 */
import { writeFileSync } from 'node:fs';

/** As the server itself: enough to come second, not so much that other work on the machine starves recording. */
const niceness = 5;

/** `pid` is a backend of our own embedded server; never one that a server elsewhere named. */
export function giveWay(pid: number): void {
  if (process.platform !== 'linux') return;
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(niceness));
  } catch {
    // No autogroups, or not allowed: answers and recording share the processors evenly.
  }
}
