import { execFileSync, spawnSync } from 'node:child_process';
import type { Fault } from '../fault.ts';

const limit = (pid: number, bytes: string) => execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`]);

export const diskLimit: Fault = {
  name: 'disk-limit',
  does: 'a limit on the size of files for the gateway’s process, below what its journal has',
  heals: 'the limit is lifted',
  costs: 'exchanges meanwhile, counted by the gateway as dropped; votes get 503 with Retry-After and come again',
  // The limit belongs to the process, and whatever it starts inherits it.
  parts: ['disk', 'gateway', 'database'],
  holdMs: [500, 4000],
  excuses: ['not-recorded'],
  unable: ({ kind }) =>
    spawnSync('prlimit', ['--version']).status !== 0
      ? 'there is no prlimit here'
      : kind === 'embedded'
        ? 'done with the external database, where no Postgres can inherit the limit'
        : null,
  async inject({ gateway }) {
    const { pid } = gateway;
    if (pid !== null) limit(pid, '4096');
    return { detail: '4096 bytes', heal: () => void (pid !== null && pid === gateway.pid && limit(pid, 'unlimited')) };
  },
};
