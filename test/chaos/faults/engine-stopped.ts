import { always, type Fault } from '../fault.ts';

export const engineStopped: Fault = {
  name: 'engine-stopped',
  does: 'SIGSTOP of `pawl engine`',
  heals: 'SIGCONT',
  costs: 'no record; calls to it wait, or get 504 after its `silenceSeconds`',
  parts: ['engine'],
  holdMs: [500, 6000],
  excuses: ['upstream'],
  unable: always,
  async inject({ engine }) {
    engine.signal('SIGSTOP');
    return { detail: '', heal: () => engine.signal('SIGCONT') };
  },
};
