import type { Fault } from '../fault.ts';
import { now } from '../ledger.ts';

const limitMs = 60_000;

export const databaseSilent: Fault = {
  name: 'database-silent',
  does: 'connections to the database go silent for good, as behind a firewall that forgot them; new ones work',
  heals: 'not at all: the gateway has to notice and connect again, which is waited for',
  costs: 'nothing; recordings wait in the journal',
  parts: ['database'],
  holdMs: [1000, 5000],
  excuses: [],
  unable: ({ database }) => (database.proxy === null ? 'the embedded database has no network in between' : null),
  async inject({ database, gateway, ledger }) {
    const forgotten = await database.backends();
    database.proxy!.silence();
    return {
      detail: `${forgotten.length} connections`,
      async heal() {
        await gateway.up();
        const what = `nothing was written for ${limitMs / 1000} s after connections had gone silent`;
        if (!(await gateway.writes(limitMs))) ledger.findings.push({ at: now(), during: databaseSilent.name, what });
        // The server's ends, which a server's own keepalive would end some day. The gateway's ends hear nothing of it.
        await database.end(forgotten);
      },
    };
  },
};
