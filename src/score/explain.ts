/**
 * One score in words that need no knowledge of rewards: what the number is, what each part added to it or took from it, and what
 * nobody could tell. The additions sum up to the total. Pure: the record in, sentences out.
 */
import type { PartScore, Score } from './score.ts';

export type ExplainedPart = {
  readonly name: string;
  /** What it added to the total; below 0 for a penalty; null: it did not speak. */
  readonly adds: number | null;
  /** The most it could have added here. */
  readonly most: number;
  readonly sentence: string;
};
export type Explanation = { readonly summary: string; readonly parts: readonly ExplainedPart[] };

const shown = (value: number): string => value.toFixed(3);
const percent = (share: number): string => `${Math.round(share * 100)}%`;
const words = (name: string): string => name.replaceAll(/[_-]/g, ' ');

function quality(value: number): string {
  if (value >= 0.95) return 'as good as it can be';
  if (value >= 0.7) return 'good';
  if (value >= 0.4) return 'half and half';
  return value > 0.05 ? 'poor' : 'as bad as it can be';
}

/** A scorer's reason is a few words, a judge's is sentences. */
function because(reason: string): string {
  const said = reason.trim();
  return said === '' ? '.' : `: ${said}${/[.!?…]$/.test(said) ? '' : '.'}`;
}

function sentenceOf(name: string, part: PartScore, adds: number | null, most: number): string {
  const { value, reason, failed, penalty } = part;
  if (failed) return `${words(name)} could not be asked (${reason}); the next run asks again.`;
  const why = because(reason);
  if (value === null) return `${words(name)} says nothing${why}`;
  if (adds === null) return `${words(name)} is ${quality(value)}, and adds nothing while there is no score${why}`;
  if (penalty) return adds === 0 ? `${words(name)} costs nothing${why}` : `${words(name)} costs ${shown(-adds)}${why}`;
  return `${words(name)} is ${quality(value)} and adds ${shown(adds)} of ${shown(most)}${why}`;
}

export function explain({ total, measured, parts: given }: Pick<Score, 'total' | 'measured' | 'parts'>): Explanation {
  const parts = Object.entries(given);
  const weightOf = (some: readonly (readonly [string, PartScore])[]): number =>
    some.reduce((sum, [, { weight }]) => sum + weight, 0);
  const whole = weightOf(parts);
  const ordinary = parts.filter(([, { penalty }]) => !penalty);
  const known = ordinary.filter(([, { value }]) => value !== null);
  const share = weightOf(ordinary) / whole / (weightOf(known) || 1); // of a unit of weight that spoke
  const explained = parts.map(([name, part]): ExplainedPart => {
    const { value, weight, penalty } = part;
    const most = penalty ? 0 : value === null ? 0 : weight * share;
    const adds =
      value === null || total === null ? null : penalty ? -(weight / whole) * (1 - value) || 0 : most * value;
    return { name, adds, most, sentence: sentenceOf(name, part, adds, most) };
  });
  const failed = parts.filter(([, part]) => part.failed).map(([name]) => words(name));
  const spoke = parts.filter(([, { value }]) => value !== null).length;
  if (failed.length > 0) return { summary: `No score yet: ${failed.join(' and ')} failed.`, parts: explained };
  if (total === null) return { summary: 'No score: nothing here tells how good it was.', parts: explained };
  const rests =
    spoke === parts.length
      ? 'every part spoke'
      : `${spoke} of ${parts.length} parts spoke, with ${percent(measured)} of the weight`;
  return { summary: `${shown(total)} of 1, ${quality(total)}: ${rests}.`, parts: explained };
}
