/** A rule: the answer is in one of these languages, or, with 'same', in that of the question. Too short to tell is unmeasured. */
import { broken, byAnswer, kept, type Verdict } from './answer-rule.ts';
import { languageOf, languages } from './detect-language.ts';
import type { ComputingScorer } from './scorer.ts';

export function language(wanted: 'same' | readonly string[]): ComputingScorer {
  const unknown = wanted === 'same' ? undefined : wanted.find((one) => !languages.includes(one));
  if (unknown !== undefined || wanted.length === 0)
    throw new Error(`language takes 'same' or some of ${languages.join(', ')}; '${unknown ?? ''}' is none of them.`);
  return {
    name: 'language',
    version: JSON.stringify(['language', 2, wanted === 'same' ? wanted : [...wanted].sort()]),
    inProcess: true,
    score: (input) =>
      byAnswer(input, ({ text, question }): Verdict => {
        const asked = wanted === 'same' ? languageOf(question) : null;
        if (wanted === 'same' && asked === null)
          return { worth: null, why: 'the question is too short to tell its language' };
        const found = languageOf(text);
        if (found === null) return { worth: null, why: 'the answer is too short to tell its language' };
        const isWanted = wanted === 'same' ? found === asked : wanted.includes(found);
        return isWanted ? kept : broken(`in ${found}, not ${wanted === 'same' ? asked : wanted.join(' or ')}`);
      }),
  };
}
