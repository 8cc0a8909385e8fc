import { always, type Fault } from '../fault.ts';

const minute = 60_000;
const jumps = [-400 * 1440, -1440, -61, -2, 2, 61, 1440, 400 * 1440];

export const clockJumped: Fault = {
  name: 'clock-jumped',
  does: 'the gateway’s clock jumps by minutes, hours, days or a year, in either direction, and jumps back',
  heals: 'the clock is right again, which is a jump as well',
  costs: 'nothing; rows carry the time the gateway had',
  parts: ['clock'],
  holdMs: [500, 3000],
  excuses: [],
  unable: always,
  async inject({ setClock }, random) {
    const minutes = random.pick(jumps);
    setClock(minutes * minute);
    return { detail: `${minutes} min`, heal: () => setClock(0) };
  },
};
