/**
 * Lets the embedded database's work for the recorder wait while the gateway answers. Being nice is not enough on Linux:
 * each backend is a session of its own, and with autogroups a session's share is what its group is given, whatever the
 * niceness of the processes in it. So the group is made nice. Without autogroups the file is not there, and niceness,
 * which backends inherit from the server (embedded.ts), does it alone.
 *
 * Where other programs keep every processor busy, the nicest get next to nothing, and what was recorded would be seen minutes later.
 * Whoever has waited too long takes an even share until all is done; anybody may do that to a group of their own.
 */
import { writeFileSync } from 'node:fs';

/** The lowest there is: what waits for the database waits in the journal, where it is safe. */
const nicest = 19;

export type Waiting = {
  /** `pid` is a backend of our own embedded server; never one that a server elsewhere named. */
  add(pid: number): void;
  gone(pid: number): void;
  /** Gives way no longer, or again. */
  hurry(on: boolean): void;
};

/** `setIdle`: as in collect/sink.ts. */
export function createWaiting(
  setIdle: (pid: number, isIdle: boolean) => void = () => {},
  setNiceness: (pid: number, niceness: number) => void = setGroup,
): Waiting {
  const pids = new Set<number>();
  let gives = true;
  const set = (pid: number): void => {
    setIdle(pid, gives);
    setNiceness(pid, gives ? nicest : 0);
  };
  return {
    add(pid) {
      pids.add(pid);
      set(pid);
    },
    gone: (pid) => void pids.delete(pid), // its number may soon be another's
    hurry(on) {
      gives = !on;
      for (const pid of pids) set(pid);
    },
  };
}

function setGroup(pid: number, niceness: number): void {
  if (process.platform !== 'linux') return;
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(niceness));
  } catch {
    // No autogroups, or not allowed, or asked again too soon: answers and recording share the processors as they did.
  }
}
