/**
 * How a thread or process gets only what nobody else wants. Being nice is not that: since Linux 6.6 whoever runs may finish its slice of some
 * milliseconds, however nice, and who answers waits for it. The policy that was made for it (SCHED_IDLE) gives way at once. Node has no call for
 * it; util-linux and BusyBox have a program, and without that it stays with niceness.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/** Where niceness is a thread's own and not the process's. */
export const isPerThread = process.platform === 'linux';

/**
 * Whether this process may take back what it gave up: root may, and whoever has CAP_SYS_NICE outside of any user namespace. Found out by
 * trying, with the thread that asks; one that may not is one nicer from then on.
 */
export function mayReturn(): boolean {
  if (!isPerThread) return false;
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

/** null: nobody says. */
export function thisThread(): number | null {
  try {
    return Number(readlinkSync('/proc/thread-self').split('/').at(-1));
  } catch {
    return null;
  }
}

export type Policies = {
  /** Of a thread, or of a process with one. Resolves with whether it worked; in the order in which it was asked. */
  setIdle(id: number, on: boolean): Promise<boolean>;
  close(): void;
};

/** So long an answer is waited for; then the program is given up, and with it all that was asked. */
const ANSWER_MS = 5000;
/** BusyBox knows the short forms only. Numbers are all that is ever said to it. */
const script =
  'while read -r policy id; do if chrt "$policy" -p 0 "$id" >/dev/null 2>&1; then echo yes; else echo no; fi; done';

/**
 * A small shell that stands by from the first time on. Starting a program from a process that holds hundreds of megabytes keeps that process
 * for ten milliseconds, and this one answers. Programs inherit the policy of the thread that starts them, so whoever opens this must be
 * one that never gives way.
 */
export function openPolicies(): Policies {
  let shell: ChildProcess | null = null;
  let closed = false;
  let said = '';
  const asked: { readonly settle: (worked: boolean) => void; readonly timer: NodeJS.Timeout }[] = [];

  const answer = (worked: boolean): void => {
    const one = asked.shift();
    if (one === undefined) return;
    clearTimeout(one.timer);
    one.settle(worked);
  };
  const giveUp = (): void => {
    shell?.kill('SIGKILL');
    shell = null;
    said = '';
    while (asked.length > 0) answer(false);
  };

  function start(): ChildProcess {
    const started = spawn('sh', ['-c', script], { stdio: ['pipe', 'pipe', 'ignore'], env: { PATH: process.env.PATH } });
    const lost = (): void => {
      if (shell === started) giveUp();
    };
    started.on('error', lost).on('exit', lost);
    started.stdin!.on('error', lost);
    started.stdout!.setEncoding('utf8').on('data', (text: string) => {
      const lines = (said + text).split('\n');
      said = lines.pop()!;
      for (const line of lines) answer(line === 'yes');
    });
    // It ends with the process, whose end closes its input.
    started.unref();
    for (const pipe of [started.stdin, started.stdout]) (pipe as unknown as { unref(): void }).unref();
    return started;
  }

  return {
    setIdle(id, on) {
      if (!isPerThread || closed || !Number.isSafeInteger(id) || id < 1) return Promise.resolve(false);
      return new Promise((settle) => {
        asked.push({ settle, timer: setTimeout(giveUp, ANSWER_MS).unref() });
        try {
          shell ??= start();
          shell.stdin!.write(`${on ? '-i' : '-o'} ${id}\n`);
        } catch {
          giveUp(); // no process can be started now
        }
      });
    },
    close() {
      closed = true;
      giveUp();
    },
  };
}
