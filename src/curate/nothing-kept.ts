/** What to say when no conversation passes the gates: how many came, where they were left out, and what can be done about it. */
import { BoundaryError } from '../errors.ts';
import { counted } from '../terminal.ts';
import type { FunnelStep } from './funnel.ts';

/** By gate, and by reason where that says more: in whose hands it is. */
const wayOut: Readonly<Record<string, string>> = {
  consent: 'Only conversations of users who had agreed before are learned from: `pawl consent give USER`.',
  'consent/given afterwards':
    'Consent counts from the moment it is given; what these users say from now on can be learned from.',
  score: 'Send outcomes or feedback (`/v1/outcomes`, `/v1/feedback`); `pawl score show ID` says what was measured.',
  errors: '`pawl trajectories list --errors` shows them.',
  region:
    'Their keys are of another region: set `curate.region`, or ask for consent to transfer (`pawl consent give USER --for transfer`).',
  tenant:
    'Their keys are of another tenant: set `curate.tenant`, or ask for consent across tenants (`pawl consent give USER --for tenants`).',
  'k-anonymity': 'What few people ask may point at one of them; `curate.kAnonymity` says how many there must be.',
  confidentiality: '`curate.confidential` has the lists, and can keep such conversations inside instead.',
  origin: 'Only what users did is learned from; the key decides what traffic is (`pawl keys list`).',
};

export function nothingKept(funnel: readonly FunnelStep[]): string[] {
  const came = funnel[0]?.entered ?? 0;
  if (came === 0)
    return [
      'No conversation was recorded in this window; `--since` widens it, `pawl trajectories list` shows what there is.',
    ];
  const left = funnel.flatMap(({ gate, left: reasons }) =>
    Object.entries(reasons).map(([reason, count]) => ({ gate, reason, count })),
  );
  return [
    `None of ${counted(came, 'conversation')} passed every gate:`,
    ...left
      .sort((a, b) => b.count - a.count)
      .map(({ gate, reason, count }) => {
        const way = wayOut[`${gate}/${reason}`] ?? wayOut[gate];
        return `  ${count} at ${gate}: ${reason}.${way === undefined ? '' : ` ${way}`}`;
      }),
  ];
}

/** Nothing passed, and the caller has no use for an empty dataset. */
export class NothingKept extends BoundaryError {
  readonly funnel: readonly FunnelStep[];

  constructor(funnel: readonly FunnelStep[]) {
    super(`${nothingKept(funnel).join('\n')}\nNo dataset was made.`);
    this.funnel = funnel;
  }
}
