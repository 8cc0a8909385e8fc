import type { Fault } from '../fault.ts';

export const databaseCut: Fault = {
  name: 'database-cut',
  does: 'resets every connection to the database, several times',
  heals: 'new connections work at once',
  costs: 'nothing',
  parts: ['database'],
  holdMs: [300, 2000],
  excuses: [],
  unable: ({ database }) => (database.proxy === null ? 'the embedded database has no network in between' : null),
  async inject({ database }) {
    database.proxy!.cut();
    const timer = setInterval(() => database.proxy!.cut(), 150);
    return { detail: 'every 150 ms', heal: () => clearInterval(timer) };
  },
};
