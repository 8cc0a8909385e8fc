import { always, type Fault } from '../fault.ts';

export const upstreamSlow: Fault = {
  name: 'upstream-slow',
  does: 'half of all answers take 0.3 to 3 s',
  heals: 'answers are quick again',
  costs: 'nothing',
  parts: ['upstream'],
  holdMs: [1000, 4000],
  excuses: ['upstream', 'overload'],
  unable: always,
  async inject({ load }) {
    load.mix = { echo: 50, 'slow-300': 30, 'slow-1000': 15, 'slow-3000': 5 };
    return {
      detail: '',
      heal() {
        load.mix = load.usualMix;
      },
    };
  },
};
