import { always, type Fault } from '../fault.ts';
import { holdLiving } from '../hold.ts';

export const databaseKilled: Fault = {
  name: 'database-killed',
  does: 'kill -9 of the postmaster alone, or of all processes of Postgres at once',
  heals: 'whoever runs it starts it again: the gateway its embedded one, the harness the external one',
  costs: 'nothing; recordings wait in the journal',
  parts: ['database'],
  holdMs: [500, 3000],
  excuses: [],
  unable: always,
  async inject({ database }, random) {
    if (random.chance(0.5)) {
      process.kill(database.postmaster, 'SIGKILL');
      return { detail: 'postmaster', heal: () => {} };
    }
    await (await holdLiving(database)).kill();
    return { detail: 'all processes', heal: () => {} };
  },
};
