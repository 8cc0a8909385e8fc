/**
 * Whether a rollout may begin, and how. Pure. The first that holds decides:
 *
 *   1  canary    a person forces it, with a reason
 *   2  refused   there is no report, or it is about other releases than the candidate and the one that serves
 *   3  refused   the report fails
 *   4  waiting   the report is inconclusive or unmeasured, and `notPassed` is `ask`; with `refuse`, refused
 *   5  waiting   the report passes, and `approval` is `human`
 *   6  canary    the report passes
 */
import type { Report } from '../evaluate/report.ts';
import type { RolloutSettings } from './rollout.ts';

export type AdmissionReport = Pick<Report, 'id' | 'verdict' | 'baseline' | 'candidate'>;

export type Asking = {
  readonly agent: string;
  /** Names of the releases. */
  readonly candidate: string;
  readonly baseline: string;
  readonly report: AdmissionReport | null;
  readonly settings: Pick<RolloutSettings, 'approval' | 'notPassed'>;
  /** Why a person wants it whatever the report says; null where nobody does. */
  readonly forced: string | null;
};

export type Admission = { readonly phase: 'canary' | 'waiting' | 'refused'; readonly reason: string };

export function admit({ agent, candidate, baseline, report, settings, forced }: Asking): Admission {
  const found = report === null ? 'There is no evaluation.' : `Its evaluation ended with ${report.verdict}.`;
  if (forced !== null) return { phase: 'canary', reason: `Forced: ${forced} ${found}` };
  const refused = (why: string): Admission => ({
    phase: 'refused',
    reason: `Release ${candidate} is not rolled out: ${why}`,
  });
  const evaluate = `\`pawl evaluate --agent ${agent} --candidate ${candidate}\``;
  const force = 'a person may begin all the same with --force and --reason';
  if (report === null)
    return refused(`it has not been evaluated against ${baseline}, which serves. Run ${evaluate} first; ${force}.`);
  if (report.candidate !== candidate || report.baseline !== baseline)
    return refused(
      `report ${report.id} compares ${report.candidate} with ${report.baseline}, and ${baseline} serves. Run ${evaluate}; ${force}.`,
    );
  switch (report.verdict) {
    case 'fail':
      return refused(`its evaluation ended with fail (\`pawl reports show ${report.id}\` says why); ${force}.`);
    case 'inconclusive':
    case 'unmeasured':
      if (settings.notPassed === 'refuse')
        return refused(`its evaluation ended with ${report.verdict}, and deploy.notPassed is refuse; ${force}.`);
      return { phase: 'waiting', reason: `Waits for approval. ${found}` };
    case 'pass':
      if (settings.approval === 'human') return { phase: 'waiting', reason: `Waits for approval. ${found}` };
      return { phase: 'canary', reason: found };
    default:
      return report.verdict satisfies never;
  }
}
