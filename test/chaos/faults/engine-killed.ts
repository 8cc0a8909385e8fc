import { always, type Fault } from '../fault.ts';

export const engineKilled: Fault = {
  name: 'engine-killed',
  does: 'kill -9 of `pawl engine`, which answers a small share of the calls',
  heals: 'the harness starts it again',
  costs: 'no record; calls to it get 502, recorded as such',
  parts: ['engine'],
  holdMs: [300, 2000],
  excuses: ['upstream'],
  unable: always,
  async inject({ engine }) {
    await engine.kill();
    return { detail: '', heal: () => engine.start() };
  },
};
