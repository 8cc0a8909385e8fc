/** Policy drift: KL(candidate ‖ baseline) as drift.ts measures it, against its limit. What is not known holds nothing up. */
import { type Gate, type GatedCase, lookAt, unmeasured } from './gate.ts';

const name = 'drift';

export function driftGate(cases: readonly GatedCase[], limit: number, drift: number | null): Gate {
  if (drift === null)
    return unmeasured(
      name,
      limit,
      'No server said which tokens were written and how likely each was; Pawl’s engine and vLLM do, at temperature 1.',
    );
  const fails = drift > limit;
  return {
    ...{ name, verdict: fails ? 'fail' : 'pass', baseline: 0, candidate: drift, limit },
    reason: `Its answers drifted ${Math.max(0, drift).toFixed(2)} nats per token from the baseline’s${fails ? `, more than ${limit}` : ''}.`,
    look: fails ? lookAt(cases, () => true) : [],
  };
}
