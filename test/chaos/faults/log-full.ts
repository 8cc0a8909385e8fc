import { appendFileSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from '../fault.ts';

const page = 4096;

export const logFull: Fault = {
  name: 'log-full',
  does: 'the file system under the log is full while there is something to say: the recorder’s thread is ended three times',
  heals: 'space comes back',
  costs: 'what the thread had not acknowledged, counted as lost in a crash; log lines; nothing else',
  parts: ['log', 'gateway'],
  holdMs: [500, 2000],
  excuses: ['not-recorded'],
  unable: ({ logDisk }) => (logDisk === null ? 'mounting a tmpfs needs root' : null),
  async inject({ logDisk, log, gateway }) {
    // A page that has begun could still be written to its end.
    appendFileSync(log, '\n'.repeat(page - (statSync(log).size % page)));
    logDisk!.fill();
    for (let i = 0; i < 3; i++) {
      gateway.signal('SIGUSR2');
      await sleep(400);
    }
    return { detail: '', heal: () => logDisk!.empty() };
  },
};
