/**
 * What the rules about answers have in common: each answer either keeps the rule or breaks it, or is partly worth something; a
 * conversation is worth the mean of its answers. An empty answer is worth nothing under any rule, since saying nothing keeps
 * every prohibition. No answer, or none that the rule speaks of, is unmeasured.
 */
import { type Measured, mean, type ScorerInput, unmeasured } from './scorer.ts';
import { type Answer, answersOf } from './story.ts';

export type Verdict = {
  /** 0–1; null: the rule has nothing to say about this answer. */
  readonly worth: number | null;
  /** What is wrong, or why the rule has nothing to say; '' when all is well. */
  readonly why: string;
};

export const kept: Verdict = { worth: 1, why: '' };
export const broken = (why: string): Verdict => ({ worth: 0, why });

const empty = broken('an empty answer');

/** Every answer that can be judged alone; in order of the conversation. */
export const judgeable = ({ turns }: ScorerInput): Answer[] => answersOf(turns);

export const verdictOn = (answer: Answer, check: (answer: Answer) => Verdict): Verdict =>
  answer.text.trim() === '' ? empty : check(answer);

export function together(answers: readonly Answer[], verdicts: readonly Verdict[]): Measured {
  if (answers.length === 0) return unmeasured('no answer in words');
  const said = answers.flatMap(({ turn }, i): [string, number][] => {
    const { worth } = verdicts[i]!;
    return worth === null ? [] : [[turn.id, worth]];
  });
  if (said.length === 0) return unmeasured(verdicts[0]!.why);
  const faults = verdicts.filter(({ worth }) => worth !== null && worth < 1);
  const answersIn = said.length === 1 ? '1 answer' : `${said.length} answers`;
  return {
    value: mean(said.map(([, worth]) => worth)),
    reason: faults.length === 0 ? `${answersIn}, all well` : `${faults.length} of ${answersIn}: ${faults[0]!.why}`,
    turns: new Map(said),
  };
}

export const byAnswer = (input: ScorerInput, check: (answer: Answer) => Verdict): Measured => {
  const answers = judgeable(input);
  return together(
    answers,
    answers.map((answer) => verdictOn(answer, check)),
  );
};
