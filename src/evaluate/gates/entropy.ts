/**
 * Entropy collapse: a model that has stopped to consider anything but one way of answering. Estimated by the mean of −log p
 * of the tokens it sampled, in nats per token, which at temperature 1 is its entropy. Known only where tokens are.
 */
import { fewestCases, type Gate, type GatedCase, lookAt, unmeasured } from './gate.ts';

const name = 'entropy';

function entropyOf(cases: readonly GatedCase[], side: 'baseline' | 'candidate'): number | null {
  let tokens = 0;
  let surprise = 0;
  for (const one of cases)
    for (const { answer } of one[side]) {
      tokens += answer.written?.tokens ?? 0;
      surprise += answer.written?.surprise ?? 0;
    }
  return tokens === 0 ? null : surprise / tokens;
}

/** `limit`: least share of the baseline's entropy that must be left, e.g. 0.2. */
export function entropyGate(cases: readonly GatedCase[], limit: number): Gate {
  const [baseline, candidate] = [entropyOf(cases, 'baseline'), entropyOf(cases, 'candidate')];
  if (cases.length < fewestCases || baseline === null || candidate === null || baseline <= 0)
    return unmeasured(
      name,
      limit,
      'No server said which tokens were written and how likely each was; Pawl’s engine and vLLM do, at temperature 1.',
    );
  const fails = candidate < limit * baseline;
  return {
    ...{ name, verdict: fails ? 'fail' : 'pass', baseline, candidate, limit },
    reason: `Entropy is ${candidate.toFixed(3)} nats per token, the baseline’s ${baseline.toFixed(3)}${fails ? `: less than ${limit * 100}% of it is left` : ''}.`,
    look: fails ? lookAt(cases, () => true) : [],
  };
}
