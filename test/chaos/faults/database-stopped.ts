import { always, type Fault } from '../fault.ts';
import { holdLiving } from '../hold.ts';

export const databaseStopped: Fault = {
  name: 'database-stopped',
  does: 'SIGSTOP of all processes of Postgres',
  heals: 'SIGCONT',
  costs: 'nothing; recordings wait in the journal',
  parts: ['database'],
  holdMs: [500, 6000],
  excuses: [],
  unable: always,
  async inject({ database }) {
    const held = await holdLiving(database);
    return { detail: '', heal: () => held.release() };
  },
};
