import { always, type Fault } from '../fault.ts';

export const upstreamSilent: Fault = {
  name: 'upstream-silent',
  does: 'connections to the model server go silent and come back, or are reset afterwards',
  heals: 'bytes flow again, or the connections are reset',
  costs: 'no record; callers wait, get 502 or 504, or a stream that ends early, recorded as such',
  parts: ['upstream'],
  holdMs: [500, 4000],
  excuses: ['upstream', 'overload'],
  unable: always,
  async inject({ upstream }, random) {
    const comesBack = random.chance(0.5);
    upstream.silence();
    return {
      detail: comesBack ? 'comes back' : 'reset afterwards',
      heal: () => (comesBack ? upstream.resume() : upstream.cut()),
    };
  },
};
