import { setTimeout as sleep } from 'node:timers/promises';
import { always, type Fault } from '../fault.ts';

export const gatewayKilled: Fault = {
  name: 'gateway-killed',
  does: 'kill -9 of the gateway under load; it is started again at once or a moment later',
  heals: 'the next start reads what the journal holds',
  costs: 'answers of the last moments before the kill; each is laid to it by time, and the oldest is max_unrecorded_ms',
  parts: ['gateway'],
  holdMs: [200, 1500],
  excuses: ['away'],
  unable: always,
  async inject({ gateway }, random) {
    await gateway.kill();
    const pauseMs = random.integer(0, 300);
    await sleep(pauseMs);
    gateway.begin();
    return { detail: `again after ${pauseMs} ms`, heal: () => {} };
  },
};
