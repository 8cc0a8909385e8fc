/** Training runs whose beginning, asking and ending stand in the audit log, each together with the change it tells of. */
import { audit } from '../audit.ts';
import type { Store } from '../store/postgres.ts';
import { postgresRunStore } from '../store/runs.ts';
import type { RunRecord, RunStore } from './run-record.ts';

/** `actor`: who trains; `pawl` for the loop. */
export function auditedRuns(store: Store, actor: string): RunStore {
  const runs = postgresRunStore(store);
  const changed = (
    id: string,
    change: (runs: RunStore) => Promise<void>,
    told: (run: RunRecord) => { readonly event: string; readonly details: Record<string, unknown> } | null,
  ): Promise<void> =>
    store.db.transaction().execute(async (db) => {
      const within = postgresRunStore({ ...store, db });
      const before = await within.get(id);
      await change(within);
      const run = await within.get(id);
      if (run === null || (before?.status === run.status && before.request === run.request)) return;
      const said = told(run);
      if (said !== null) await audit(db, { agent: run.agent, actor, subject: id, at: Date.now(), ...said });
    });
  return {
    ...runs,
    create: (run) =>
      changed(
        run.id,
        (within) => within.create(run),
        ({ recipe, base, seed, budget, settings: { dataset = null } }) => ({
          event: 'run-begun',
          details: { recipe, base, dataset, seed, budget },
        }),
      ),
    setStatus: (id, status, reason, now) =>
      changed(
        id,
        (within) => within.setStatus(id, status, reason, now),
        ({ step, steps, spent }) =>
          status === 'running' ? null : { event: `run-${status}`, details: { reason, step, steps, spent } },
      ),
    request: (id, request) =>
      changed(
        id,
        (within) => within.request(id, request),
        () => (request === null ? null : { event: 'run-asked', details: { to: request } }),
      ),
  };
}
