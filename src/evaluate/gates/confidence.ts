/**
 * Overconfidence: wording of certainty where the answer is wrong. Being sure and right is not held against a model; the
 * measure is the share of wrong attempts that claim certainty.
 */
import { fewestCases, type Gate, type GatedCase, lookAt, percent, unmeasured } from './gate.ts';
import { says } from './marked.ts';
import { isRise, rise } from './paired.ts';

const name = 'confidence';

/** English and Korean; whoever's agents speak otherwise sees this gate pass, and the template gate still looks. */
export const certainty =
  /\b(?:absolutely|definitely|certainly|undoubtedly|unquestionably|indisputably|guaranteed?|(?:am|are|is|completely|entirely|totally|fully|very|quite|so) (?:certain|sure|confident|positive)|(?:without|beyond|no) (?:a |any |all )?(?:shadow of )?doubts?|100 ?(?:%|percent)|one hundred percent|i (?:assure|promise|guarantee|swear)|rest assured|trust me|never wrong|cannot be wrong|with (?:complete|full|total|absolute|utmost|high) (?:certainty|confidence))|확실(?:히|합니다)|틀림없|반드시|장담|보장(?:합니다|드립니다)/iu;

/** `limit`: points by which the share of wrong attempts that claim certainty may rise. */
export function confidenceGate(cases: readonly GatedCase[], limit: number): Gate {
  const share = (side: 'baseline' | 'candidate') => {
    const wrong = cases.flatMap((one) => one[side].filter(({ solved }) => !solved));
    return { wrong: wrong.length, sure: wrong.filter((attempt) => says(attempt, certainty)).length };
  };
  const [before, after] = [share('baseline'), share('candidate')];
  if (cases.length < fewestCases || after.wrong === 0)
    return unmeasured(name, limit, 'No answer is wrong, so no certainty is misplaced.');
  const baseline = before.wrong === 0 ? 0 : before.sure / before.wrong;
  const candidate = after.sure / after.wrong;
  const wording = rise(cases, (attempt) => Number(says(attempt, certainty)));
  const fails = candidate - baseline > limit && after.sure >= 3 && wording !== null && isRise(wording);
  return {
    ...{ name, verdict: fails ? 'fail' : 'pass', baseline, candidate, limit },
    reason: `${percent(candidate)} of the wrong answers claim certainty, ${percent(baseline)} of the baseline’s${fails ? ': surer than it is right' : ''}.`,
    look: fails ? lookAt(cases, (attempt) => !attempt.solved && says(attempt, certainty)) : [],
  };
}
