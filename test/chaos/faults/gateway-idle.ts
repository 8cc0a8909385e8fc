import { setTimeout as sleep } from 'node:timers/promises';
import { always, type Fault } from '../fault.ts';

export const gatewayIdle: Fault = {
  name: 'gateway-idle',
  does: 'two restarts with nothing to do in between, so that a life begins and ends with an empty journal',
  heals: 'load comes back after the second',
  costs: 'nothing',
  parts: ['gateway', 'database', 'disk', 'callers'],
  holdMs: [500, 1500],
  excuses: ['away'],
  unable: always,
  async inject({ gateway, load }, random) {
    await load.pause();
    await gateway.drained(20_000);
    await gateway.end();
    gateway.begin();
    await gateway.up();
    const idleMs = random.integer(1200, 2500); // longer than the journal's cursor may lag
    await sleep(idleMs);
    await gateway.end();
    gateway.begin();
    await gateway.up();
    load.resume();
    return { detail: `idle for ${idleMs} ms`, heal: () => {} };
  },
};
