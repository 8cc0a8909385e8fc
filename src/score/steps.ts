/**
 * Credit per turn (S6): what each turn did for the conversation, from the recording alone. A turn is worth the mean of those that
 * apply to it:
 *
 *   tool choice   its calls, as toolUse() judges them
 *   information   what its tools brought that nobody had said before: full marks when a fifth of the words are new
 *   format        it was finished, could be read, and is JSON where the request asked for JSON
 *   progress      it said or called something, and not what an earlier turn had said or called
 *
 * and a conversation the mean of its turns. It says how a conversation went, not whether it got anywhere: that is for outcomes.
 */
import { argumentsText } from '../collect/message.ts';
import type { Step } from '../collect/timeline.ts';
import { isObject, parseUntrusted } from '../collect/untrusted.ts';
import { type ComputingScorer, mean, unmeasured } from './scorer.ts';
import { saidBy, storyOf } from './story.ts';
import { type JudgedCall, judgedCalls } from './tool-use.ts';

/** More of a result is not read. */
const enough = 20_000;
const wordsOf = (text: string): string[] =>
  text
    .slice(0, enough)
    .toLowerCase()
    .match(/[\p{L}\p{N}]{2,}/gu) ?? [];

function informationIn(calls: readonly JudgedCall[], known: ReadonlySet<string>): number | null {
  const words = new Set(calls.flatMap(({ result }) => (result === null ? [] : wordsOf(result))));
  if (words.size === 0) return null;
  const news = [...words].filter((word) => !known.has(word)).length;
  return Math.min(1, news / words.size / 0.2);
}

function formatOf({ turn, answers }: Step): number {
  const message = answers[0]?.message;
  const choice = turn.choices[0];
  if (message === undefined || choice === undefined || turn.status !== 'ok') return 0;
  if (choice.finishReason === 'length' || Number(choice.message.malformed_tool_calls ?? 0) > 0) return 0;
  if (message.toolCalls.length > 0) return 1;
  if (message.text.trim() === '') return 0;
  const { response_format: wanted } = turn.request;
  const isJson = isObject(wanted) && (wanted.type === 'json_object' || wanted.type === 'json_schema');
  return isJson && parseUntrusted(message.text) === undefined ? 0 : 1;
}

export function steps(): ComputingScorer {
  return {
    name: 'steps',
    version: JSON.stringify(['steps', 3]),
    inProcess: true,
    score({ turns }) {
      const calls = judgedCalls(turns);
      const known = new Set<string>();
      const done = new Set<string>();
      const perTurn = new Map<string, number>();
      const low = { 'tool choice': 0, information: 0, format: 0, progress: 0 };
      for (const step of storyOf(turns)) {
        if (step.turn.endpoint === 'embeddings') continue;
        for (const { text } of step.news) for (const word of wordsOf(text)) known.add(word);
        const said = saidBy(step);
        const isEmpty = said === null || (said.text.trim() === '' && said.toolCalls.length === 0);
        const judged = calls.get(step.turn) ?? [];
        const deed = JSON.stringify([said?.text, said?.toolCalls.map((call) => [call.name, argumentsText(call)])]);
        const marks = {
          'tool choice': judged.length === 0 ? null : mean(judged.map(({ worth }) => worth)),
          information: informationIn(judged, known),
          format: formatOf(step),
          progress: isEmpty || done.has(deed) ? 0 : 1,
        };
        done.add(deed);
        for (const { result } of judged) for (const word of wordsOf(result ?? '')) known.add(word);
        for (const [name, mark] of Object.entries(marks))
          if (mark !== null && mark < 1) low[name as keyof typeof low]++;
        perTurn.set(step.turn.id, mean(Object.values(marks).filter((mark) => mark !== null)));
      }
      if (perTurn.size === 0) return unmeasured('no turns');
      const faults = Object.entries(low).filter(([, count]) => count > 0);
      const count = perTurn.size === 1 ? '1 turn' : `${perTurn.size} turns`;
      const reason =
        faults.length === 0 ? 'all well' : faults.map(([name, times]) => `${name} lacking in ${times}`).join(', ');
      return { value: mean([...perTurn.values()]), reason: `${count}: ${reason}`, turns: perTurn };
    },
  };
}
