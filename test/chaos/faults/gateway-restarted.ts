import { always, type Fault } from '../fault.ts';

export const gatewayRestarted: Fault = {
  name: 'gateway-restarted',
  does: 'SIGTERM under load, as a deployment does it, and a new start',
  heals: 'the next start',
  costs: 'nothing: what is in flight is answered and written down',
  parts: ['gateway'],
  holdMs: [0, 500],
  excuses: ['away'],
  unable: always,
  async inject({ gateway }) {
    const ended = gateway.end();
    return {
      detail: '',
      async heal() {
        await ended;
        gateway.begin();
      },
    };
  },
};
