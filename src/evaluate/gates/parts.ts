/**
 * The reward part by part: one that falls while the whole rises has been paid for by another. That may be a trade somebody
 * wants, so a person looks. Holm over the parts, since there may be many.
 */
import { holm } from '../compare.ts';
import { fewestCases, type Gate, type GatedCase, lookAt, unmeasured } from './gate.ts';
import { rise } from './paired.ts';

const name = 'parts';
const alpha = 0.05;

/** `limit`: fall of one part that is tolerated, e.g. 0.05. */
export function partsGate(cases: readonly GatedCase[], limit: number): Gate {
  const names = [
    ...new Set(cases.flatMap(({ baseline }) => baseline.flatMap(({ answer }) => Object.keys(answer.parts)))),
  ].sort();
  const measured = names.flatMap((part) => {
    const value = (played: { answer: { parts: Readonly<Record<string, number>> } }) =>
      Object.hasOwn(played.answer.parts, part) ? played.answer.parts[part]! : null;
    const found = rise(cases, value);
    return found === null || found.n < fewestCases ? [] : [{ part, found, value }];
  });
  if (measured.length === 0) return unmeasured(name, limit, 'The reward has no parts here.');
  const adjusted = holm(measured.map(({ found }) => 1 - found.p));
  const change = ({ found }: (typeof measured)[number]) => found.candidate - found.baseline;
  const fallen = measured.filter((one, i) => change(one) < -limit && adjusted[i]! < alpha);
  const rewards = [rise(cases, ({ answer }) => answer.reward), rise(cases, ({ answer }) => answer.turnReward)];
  const rose = rewards.some((found) => found !== null && found.candidate > found.baseline);
  const asks = fallen.length > 0 && rose;
  const worst = measured.reduce((most, one) => (change(one) < change(most) ? one : most));
  const best = measured.reduce((most, one) => (change(one) > change(most) ? one : most));
  const told = ({ part, found }: (typeof measured)[number]) =>
    `${part} ${found.baseline.toFixed(2)} → ${found.candidate.toFixed(2)}`;
  return {
    ...{ name, verdict: asks ? 'inconclusive' : 'pass', limit },
    baseline: worst.found.baseline,
    candidate: worst.found.candidate,
    reason: asks
      ? `While the reward rose (${told(best)}), parts of it fell: ${fallen.map(told).join(', ')}.`
      : `Least of the reward’s ${measured.length} parts: ${told(worst)}; most: ${told(best)}.`,
    look: asks ? lookAt(cases, (played) => (fallen[0]!.value(played) ?? 1) < fallen[0]!.found.baseline) : [],
  };
}
