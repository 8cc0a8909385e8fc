import { always, type Fault } from '../fault.ts';

export const recorderKilled: Fault = {
  name: 'recorder-killed',
  does: 'ends the recorder’s thread where it stands (preload.js)',
  heals: 'the gateway starts another one',
  costs:
    'exchanges it had not acknowledged, counted by the gateway as lost in a crash; votes meanwhile get 503 and come again',
  parts: ['gateway'],
  holdMs: [200, 1000],
  excuses: ['not-recorded'],
  unable: always,
  async inject({ gateway }) {
    gateway.signal('SIGUSR2');
    return { detail: '', heal: () => {} };
  },
};
