/**
 * A rule: the answer keeps away from a tone, told by lists of phrases. Each different phrase found costs a quarter. The lists
 * here are short and say only what is hardly ever meant well; an agent's own words are added by name. No list knows irony: for
 * that there is a judge.
 */
import { byAnswer, kept } from './answer-rule.ts';
import type { ComputingScorer } from './scorer.ts';
import { wordList } from './word-list.ts';

const lists = {
  rude: [
    ...[
      'stupid',
      'idiot',
      'shut up',
      'dumb question',
      'obviously you',
      'read the manual',
      'not my problem',
      'whatever',
    ],
    ...['멍청', '바보', '닥쳐', '한심', '알아서 하세요', '제 알 바'],
  ],
  overconfident: [
    ...[
      'i guarantee',
      'absolutely certain',
      '100% sure',
      '100% certain',
      'without any doubt',
      'never fails',
      'it is impossible that',
    ],
    ...['절대 틀리지', '100% 확실', '무조건 됩니다', '제가 보장'],
  ],
  servile: [
    ...[
      'i sincerely apologize',
      'i apologize for any confusion',
      'as an ai language model',
      'great question',
      'i am just an ai',
    ],
    ...['진심으로 사과드립니다', '인공지능 언어 모델로서', '좋은 질문입니다'],
  ],
  pushy: [
    ...['act now', 'limited time', "don't miss", 'you must buy', 'last chance', 'hurry'],
    ...['지금 바로 구매', '마지막 기회', '놓치지 마세요', '서두르세요'],
  ],
} as const;

export type Tone = keyof typeof lists;

export function tone({
  avoid,
  also = [],
}: {
  readonly avoid: readonly Tone[];
  /** Phrases of one's own. */
  readonly also?: readonly string[];
}): ComputingScorer {
  const unknown = avoid.find((name) => !Object.hasOwn(lists, name));
  if (unknown !== undefined)
    throw new Error(`There is no tone '${unknown}'; there are ${Object.keys(lists).join(', ')}.`);
  if (avoid.length + also.length === 0) throw new Error('tone needs a tone to avoid.');
  const list = wordList('tone', [...avoid.flatMap((name) => lists[name]), ...also]);
  return {
    name: 'tone',
    version: JSON.stringify(['tone', 1, list.words]),
    inProcess: true,
    score: (input) =>
      byAnswer(input, ({ text }) => {
        const found = list.found(text);
        if (found.length === 0) return kept;
        return { worth: Math.max(0, 1 - found.length / 4), why: `says “${found.slice(0, 3).join('”, “')}”` };
      }),
  };
}
