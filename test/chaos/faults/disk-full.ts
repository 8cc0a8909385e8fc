import type { Fault } from '../fault.ts';

export const diskFull: Fault = {
  name: 'disk-full',
  does: 'the file system under data is full: the journal cannot grow, and neither can an embedded database',
  heals: 'space comes back',
  costs: 'exchanges meanwhile, counted by the gateway as dropped; votes get 503 with Retry-After and come again',
  // No restarts meanwhile: a process that cannot even write its lock does not start, and says so.
  parts: ['disk', 'gateway', 'database'],
  holdMs: [500, 4000],
  excuses: ['not-recorded'],
  unable: ({ dataDisk, kind }) =>
    kind === 'external'
      ? 'the home is on the machine’s own disk in this half'
      : dataDisk === null
        ? 'mounting a tmpfs needs root'
        : null,
  async inject({ dataDisk }) {
    dataDisk!.fill();
    return { detail: '', heal: () => dataDisk!.empty() };
  },
};
