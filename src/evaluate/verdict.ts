/**
 * What a comparison means. Pure. The rules, in order of precedence; the first that holds decides:
 *
 *   1  unmeasured    no task was measured for both, or fewer than 9 of 10
 *   2  fail          the candidate's mean is below 95% of the baseline's, or a gate fails (gates/): all that failed is named
 *   3  inconclusive  a task type got worse by more than 10 points, and by more than its noise (one-sided exact p < 0.05):
 *                    a model may not buy its mean by forgetting. Not corrected for the number of types, because all that
 *                    follows from a false alarm is that a person looks; the report shows the corrected p (Holm) beside it.
 *                    Or a gate asks for a person.
 *   4  pass          better, with p < 0.05, and by at least `improvement` where one is asked for
 *   5  inconclusive  everything else: a person decides
 */
import type { Comparison } from './compare.ts';
import type { Gate } from './gates/gate.ts';
import { binomialTail } from './statistics.ts';

export const verdicts = ['pass', 'fail', 'inconclusive', 'unmeasured'] as const;
export type Verdict = (typeof verdicts)[number];

export type Judgement = { readonly verdict: Verdict; readonly reasons: readonly string[] };

export type VerdictSettings = {
  /** Points by which the candidate must be better, e.g. 0.1. */
  readonly improvement?: number; // 0
  /** Fall of one task type that is tolerated. */
  readonly typeMargin?: number; // 0.1
};

export type Measured = {
  /** Tasks of the suite. */
  readonly tasks: number;
  /** null: no task was measured for both. */
  readonly overall: Comparison | null;
  readonly types: Readonly<Record<string, Comparison>>;
  readonly gates?: readonly Gate[];
};

const alpha = 0.05;
const keep = 0.95;
const leastShare = 0.9;

export function judge({ tasks, overall, types, gates = [] }: Measured, settings: VerdictSettings = {}): Judgement {
  const { improvement = 0, typeMargin = 0.1 } = settings;
  if (overall === null || overall.n < tasks * leastShare)
    return {
      verdict: 'unmeasured',
      reasons: [
        `Only ${overall?.n ?? 0} of ${tasks} tasks could be played by both models; at least ${Math.ceil(tasks * leastShare)} are needed for a verdict.`,
      ],
    };
  const { baseline, candidate, p } = overall;
  const change = `The candidate solves ${percent(candidate)} of the tasks, the baseline ${percent(baseline)} (${shownP(p)})`;
  const gateReasons = (verdict: Verdict) =>
    gates.filter((gate) => gate.verdict === verdict).map(({ name, reason }) => `Gate ${name}: ${reason}`);
  const failed = gateReasons('fail');
  const below = candidate < keep * baseline - 1e-9;
  if (below || failed.length > 0)
    return {
      verdict: 'fail',
      reasons: [`${change}${below ? ': that is below 95% of the baseline' : ''}.`, ...failed],
    };
  const asking = gateReasons('inconclusive').map((reason) => `${reason} A person decides.`);
  const fallen = Object.entries(types).filter(([, type]) => hasFallen(type, typeMargin));
  if (fallen.length > 0 || asking.length > 0)
    return {
      verdict: 'inconclusive',
      reasons: [
        `${change}.`,
        ...fallen.map(
          ([name, type]) =>
            `Tasks of type ${name} fell from ${percent(type.baseline)} to ${percent(type.candidate)}, more than ${percent(typeMargin)} and more than chance explains: a person decides whether that is worth it.`,
        ),
        ...asking,
      ],
    };
  if (candidate > baseline && p < alpha) {
    if (candidate - baseline >= improvement)
      return { verdict: 'pass', reasons: [`${change}: better, and not by chance.`] };
    return {
      verdict: 'inconclusive',
      reasons: [`${change}: better, but by less than the ${percent(improvement)} that are asked for.`],
    };
  }
  const power =
    overall.detectable === null
      ? 'No task told the two apart.'
      : `${overall.n} tasks can only be relied on to show differences of ${percent(overall.detectable)} or more.`;
  return { verdict: 'inconclusive', reasons: [`${change}: that may be chance. ${power}`] };
}

/** One-sided: how likely so many falls among the tasks that changed are, if nothing did. */
const hasFallen = (type: Comparison, margin: number): boolean =>
  type.difference < -margin && binomialTail(type.worse, type.worse + type.better, 0.5) < alpha;

/** What follows from a verdict. */
export function consequence(verdict: Verdict): string {
  switch (verdict) {
    case 'pass':
      return 'The candidate may go on to a rollout.';
    case 'fail':
      return 'The candidate stops here.';
    case 'inconclusive':
      return 'A person decides whether the candidate goes on.';
    case 'unmeasured':
      return 'Nothing follows: evaluate again.';
    default:
      return verdict satisfies never;
  }
}

export const percent = (share: number): string => `${(share * 100).toFixed(1)}%`;
const shownP = (p: number): string => (p < 0.0001 ? 'p < 0.0001' : `p = ${p.toFixed(4)}`);
