import { always, type Fault } from '../fault.ts';

export const gatewayStopped: Fault = {
  name: 'gateway-stopped',
  does: 'SIGSTOP of the gateway, as a machine that sleeps or swaps does it',
  heals: 'SIGCONT',
  costs: 'nothing; callers wait',
  parts: ['gateway'],
  holdMs: [300, 5000],
  excuses: ['away', 'overload'],
  unable: always,
  async inject({ gateway }) {
    gateway.signal('SIGSTOP');
    return { detail: '', heal: () => gateway.signal('SIGCONT') };
  },
};
