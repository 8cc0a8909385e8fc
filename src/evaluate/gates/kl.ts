/**
 * Policy drift: KL(candidate ‖ another) as drift.ts measures it, against its limit: from the baseline, and from what the candidate's line
 * began with, because many small steps, each within its limit, may lead anywhere. What is not known holds nothing up.
 */
import { type Gate, type GatedCase, lookAt, unmeasured } from './gate.ts';

const unknown =
  'No server said which tokens were written and how likely each was, or the two models have other tokens; Pawl’s engine and vLLM say so, at temperature 1.';

export function driftGate(cases: readonly GatedCase[], limit: number, drift: number | null): Gate {
  return gateOf(
    'drift',
    cases,
    limit,
    drift,
    ({ by, more }) => `Its answers drifted ${by} from the baseline’s${more}.`,
  );
}

/** What the candidate's line began with, or what the settings name; `drift` null: not known. */
export type FromBase = { readonly release: string; readonly drift: number | null };

export function baseDriftGate(cases: readonly GatedCase[], limit: number, { release, drift }: FromBase): Gate {
  return gateOf(
    ...(['drift-from-base', cases, limit, drift] as const),
    ({ by, more }) =>
      `Its answers drifted ${by} from those of ${release}, the base${more === '' ? '' : `${more}, in however many steps; \`evaluate.base\` names another release to count from`}.`,
  );
}

function gateOf(
  name: string,
  cases: readonly GatedCase[],
  limit: number,
  drift: number | null,
  say: (found: { readonly by: string; readonly more: string }) => string,
): Gate {
  if (drift === null) return unmeasured(name, limit, unknown);
  const fails = drift > limit;
  const said = { by: `${Math.max(0, drift).toFixed(2)} nats per token`, more: fails ? `, more than ${limit}` : '' };
  return {
    ...{ name, verdict: fails ? 'fail' : 'pass', baseline: 0, candidate: drift, limit, reason: say(said) },
    look: fails ? lookAt(cases, () => true) : [],
  };
}
