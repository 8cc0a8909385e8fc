/**
 * An evaluation made since the rollout began that found the candidate's answers too far from where they came from. Nothing of it is measured
 * on users and nothing is tested, so it takes no part of the error probability. A report from before takes nothing back: what let
 * the rollout begin knew of it, or a person did who forced it.
 */
import type { Report } from '../../evaluate/report.ts';
import type { Finding } from './check.ts';

/** As evaluate/gates/kl.ts calls them. */
const gates: ReadonlySet<string> = new Set(['drift', 'drift-from-base']);

/** `report`: the newest on the candidate; `since`: when its rollout began. */
export function driftFound(report: Pick<Report, 'id' | 'createdAt' | 'gates'> | null, since: number): Finding[] {
  if (report === null || report.createdAt <= since) return [];
  return (report.gates ?? [])
    .filter(({ name, verdict }) => gates.has(name) && verdict === 'fail')
    .map(({ reason }) => ({
      name: 'drift',
      end: 'fail',
      needed: false,
      reason: `${reason} Report ${report.id} says so.`,
    }));
}
