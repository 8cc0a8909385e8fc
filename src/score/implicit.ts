/**
 * What users did with the answers, without being asked. Two kinds of evidence, the first before the second for the same answer:
 *
 *   told      events the application sent: accepted and copied 1, edited 0.5, retried and abandoned 0
 *   inferred  from what the user said next: thanks 1; a correction ("no, that is wrong") 0; the same question once more 0
 *
 * Of several events of one user about one answer the mean counts; users are weighed as voters (voters.ts). The inference knows
 * the plainest English and Korean words and otherwise keeps silent: most messages say nothing about the answer before.
 */
import { normalForm } from '../collect/normal-form.ts';
import type { Signal, UserEvent } from '../collect/signal.ts';
import { type ComputingScorer, mean, unmeasured } from './scorer.ts';
import { askedIn, saidBy, storyOf } from './story.ts';
import { meanOverVoters, participantsOf } from './voters.ts';
import { wordList } from './word-list.ts';

const usual = { accepted: 1, copied: 1, edited: 0.5, retried: 0, abandoned: 0 } as const;
export type ImplicitWorth = Partial<Record<UserEvent, number>>;

const thanks = wordList('thanks', [
  ...[
    'thanks',
    'thank you',
    'thx',
    'perfect',
    'that worked',
    'works now',
    'that helps',
    'exactly what i needed',
    'great, that',
  ],
  ...['감사합니다', '감사해요', '고마워', '고맙습니다', '해결됐', '해결되었', '잘 됩니다', '완벽'],
]);
const corrections = wordList('corrections', [
  ...[
    'that is wrong',
    "that's wrong",
    'that is not right',
    "that's not right",
    'that is incorrect',
    "that's incorrect",
  ],
  ...[
    "that's not what i",
    'that is not what i',
    "that didn't work",
    'that did not work',
    'still not working',
    'still does not work',
  ],
  ...["still doesn't work", 'you misunderstood', 'wrong answer', 'not what i asked', 'no, i meant', 'no, i said'],
  ...['틀렸', '그게 아니', '아니요, ', '아니, ', '잘못됐', '잘못되었', '다시 확인', '안 됩니다', '여전히 안'],
]);

/** More of a message is not needed to tell. */
const enough = 2000;

const wordsOf = (text: string): Set<string> =>
  new Set(
    normalForm(text.slice(0, enough))
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [],
  );

/** Shared words of all words; two words are a greeting, not a question. */
function isRephrased(before: string, after: string): boolean {
  const [a, b] = [wordsOf(before), wordsOf(after)];
  if (a.size < 3 || b.size < 3) return false;
  const shared = [...a].filter((word) => b.has(word)).length;
  return shared / (a.size + b.size - shared) >= 0.6;
}

type Shown = { readonly value: number; readonly what: string };

function shownBy(next: string, before: string): Shown | null {
  const read = next.slice(0, enough);
  if (corrections.found(read).length > 0) return { value: 0, what: 'corrected' };
  if (isRephrased(before, read)) return { value: 0, what: 'asked again' };
  return thanks.found(read).length > 0 ? { value: 1, what: 'thanked' } : null;
}

export function implicit(given: ImplicitWorth = {}): ComputingScorer {
  const worth: Readonly<Record<string, number>> = { ...usual, ...given };
  const odd = Object.entries(worth).find(([name, value]) => !Object.hasOwn(usual, name) || !(value >= 0 && value <= 1));
  if (odd !== undefined)
    throw new Error(`implicit: '${odd[0]}' is worth ${odd[1]}; give ${Object.keys(usual).join(', ')} numbers in 0–1.`);
  const isEvent = ({ kind, name }: Signal): boolean => kind === 'event' && Object.hasOwn(usual, name);
  return {
    name: 'implicit',
    version: JSON.stringify(['implicit', 1, Object.entries(worth).sort()]),
    inProcess: true,
    score({ turns, signals }) {
      const participants = participantsOf(turns);
      const events = signals.filter(isEvent).map((signal) => ({ ...signal, value: worth[signal.name]! }));
      const perTurn = new Map<string, number>();
      const counts = new Map<string, number>();
      const count = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1);
      const steps = storyOf(turns);
      let question = '';
      let answered: string | null = null; // the turn whose answer the user read last
      for (const step of steps) {
        const asked = askedIn(step);
        const shown = asked === null || answered === null ? null : shownBy(asked, question);
        if (shown !== null) {
          perTurn.set(answered!, shown.value);
          count(shown.what);
        }
        question = asked ?? question;
        const said = saidBy(step);
        if (said !== null && said.toolCalls.length === 0) answered = step.turn.id;
      }
      for (const { turn } of steps) {
        const about = events.filter(({ target }) => target.kind === 'turn' && target.id === turn.id);
        if (about.length > 0) perTurn.set(turn.id, meanOverVoters(about, participants).value);
      }
      const whole = events.filter(({ target }) => target.kind !== 'turn' || !perTurn.has(target.id));
      for (const { name } of events) count(name);
      const values = [...perTurn.values()].sort((a, b) => a - b);
      if (whole.length > 0) values.push(meanOverVoters(whole, participants).value);
      if (values.length === 0) return unmeasured('the user showed nothing');
      const reason = [...counts]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([what, times]) => (times === 1 ? what : `${what} ${times} times`));
      return { value: mean(values), reason: reason.join(', '), turns: perTurn };
    },
  };
}
