/**
 * What people who looked at the conversation say it was worth: the mean over reviewers, of each the newest label. Where only turns
 * were labelled, the mean of these. With `part` what they say about that part of the reward. Few conversations have a label, so
 * most are unmeasured; a reward that rests on labels alone scores little.
 */
import { partSignal, totalName } from '../collect/label.ts';
import type { Signal } from '../collect/signal.ts';
import { type ComputingScorer, mean, unmeasured } from './scorer.ts';

/** Sorted, because sums of floating-point numbers depend on their order. */
const sortedMean = (signals: readonly Signal[]): number =>
  mean(signals.map(({ value }) => value!).sort((a, b) => a - b));

export function label(part?: string): ComputingScorer {
  const name = part === undefined ? totalName : partSignal(part);
  return {
    name: part === undefined ? 'label' : `label ${part}`,
    version: JSON.stringify(['label', 1, name]),
    usesLabels: true,
    inProcess: true,
    score({ turns, signals }) {
      const said = signals.filter((one) => one.kind === 'label' && one.name === name && one.value !== null);
      if (said.length === 0) return unmeasured('no label');
      const whole = said.filter(({ target }) => target.kind !== 'turn');
      const perTurn = turns.flatMap(({ id }): [string, number][] => {
        const about = said.filter(({ target }) => target.kind === 'turn' && target.id === id);
        return about.length === 0 ? [] : [[id, sortedMean(about)]];
      });
      const of = whole.length > 0 ? whole : said;
      const reason = of.length === 1 ? 'one label' : `${of.length} labels`;
      return {
        value: sortedMean(of),
        reason: whole.length > 0 ? reason : `${reason} of single turns`,
        turns: new Map(perTurn),
      };
    },
  };
}
