/**
 * Alerts that do something: Alertmanager's webhook (version 4) as it comes, and what follows. A firing alert with the labels
 * `pawl_action` and `agent` pulls the kill switch, aborts the open rollout or holds it, where the settings allow that action. Doing it
 * again does nothing: Alertmanager repeats itself. Whatever is not understood is ignored and counted, so that one strange alert does
 * not keep the others from being heard.
 */
import { z } from 'zod';
import type { Store } from '../store/postgres.ts';
import { readKilled } from '../store/releases.ts';
import { listRollouts } from '../store/rollouts.ts';
import type { alertActions } from './hooks-settings.ts';
import { pullKillSwitch } from './kill.ts';
import { moveRollout } from './reconcile.ts';

const labels = z.record(z.string().max(256), z.string().max(4096));
export const alertsBody = z.object({
  alerts: z
    .array(z.object({ status: z.enum(['firing', 'resolved']), labels, annotations: labels.default({}) }))
    .max(1000),
});
export type Alerts = z.output<typeof alertsBody>;
export type AlertAction = (typeof alertActions)[number];

export type Asked = {
  readonly agent: string;
  readonly action: AlertAction;
  readonly alert: string;
  readonly reason: string;
};

/** Pure: what firing alerts ask for, each once. */
export function askedBy({ alerts }: Alerts, agents: readonly string[], allowed: readonly AlertAction[]): Asked[] {
  const asked = new Map<string, Asked>();
  for (const { status, labels: of, annotations } of alerts) {
    const action = allowed.find((one) => one === of.pawl_action);
    const agent = agents.find((one) => one === of.agent);
    if (status !== 'firing' || action === undefined || agent === undefined) continue;
    const alert = of.alertname ?? 'unnamed';
    const reason = (annotations.summary ?? annotations.description ?? `Alert ${alert} fires.`).slice(0, 1000);
    asked.set(`${action} ${agent}`, { agent, action, alert, reason });
  }
  return [...asked.values()];
}

/** True where something was done. */
export async function obey(store: Store, { agent, action, alert, reason }: Asked, now: number): Promise<boolean> {
  const actor = `alert ${alert}`.slice(0, 200);
  if (action === 'kill') {
    if ((await readKilled(store, agent)) !== null) return false;
    await pullKillSwitch(store, { agent, actor, reason }, now);
    return true;
  }
  const [open] = await listRollouts(store, { agent, open: true, limit: 1 });
  if (open === undefined || (action === 'hold' && open.phase !== 'canary' && open.phase !== 'shadow')) return false;
  await moveRollout(store, open.id, action, actor, reason, now);
  return true;
}
