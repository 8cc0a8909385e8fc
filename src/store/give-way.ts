/**
 * Lets the embedded database's work for the recorder wait while the gateway answers. Being nice is not enough on Linux:
 * each backend is a session of its own, and with autogroups a session's share is what its group is given, whatever the
 * niceness of the processes in it. So the group is made nice. Without autogroups the file is not there, and niceness,
 * which backends inherit from the server (embedded.ts), does it alone.
 */
import { writeFileSync } from 'node:fs';

/** The lowest there is: what waits for the database waits in the journal, where it is safe. */
const niceness = 19;

/** `pid` is a backend of our own embedded server; never one that a server elsewhere named. */
export function giveWay(pid: number): void {
  if (process.platform !== 'linux') return;
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(niceness));
  } catch {
    // No autogroups, or not allowed: answers and recording share the processors evenly.
  }
}
