import { lies } from '../../lying-upstream.ts';
import { always, type Fault } from '../fault.ts';

const bad = [...lies, 'cut', 'cut-event', 'malformed', 'html-500', 'busy-9', 'down-9', 'refuse'];

export const upstreamLying: Fault = {
  name: 'upstream-lying',
  does: 'half of all answers are broken: wrong lengths, no JSON, bad SSE, errors with status 200, closed in the middle',
  heals: 'answers are honest again',
  costs: 'no record: each is recorded as what it was',
  parts: ['upstream'],
  holdMs: [1000, 4000],
  excuses: ['upstream'],
  unable: always,
  async inject({ load }) {
    load.mix = { echo: 50, ...Object.fromEntries(bad.map((model) => [model, 50 / bad.length])) };
    return {
      detail: '',
      heal() {
        load.mix = load.usualMix;
      },
    };
  },
};
