/** What every scorer must do, whatever it measures. Each scorer's test hands in its own best and silent cases. */
import { expect, test } from 'vitest';
import type { Scorer, ScorerInput } from './scorer.ts';

export type ScorerCases = {
  readonly scorer: Scorer;
  /** Deserves full marks. */
  readonly gold: ScorerInput;
  /** Deserves less than full marks. */
  readonly poor: ScorerInput;
  /** Nothing here lets the scorer tell. */
  readonly silent: ScorerInput;
};

const plain = ({ value, turns, reason }: ReturnType<Scorer['score']>) => ({
  value,
  reason,
  turns: [...turns].sort(([a], [b]) => (a < b ? -1 : 1)),
});

export function scorerConformance({ scorer, gold, poor, silent }: ScorerCases): void {
  const cases = Object.entries({ gold, poor, silent });

  test('gives full marks to its gold case, and less to the poor one', () => {
    expect(scorer.score(gold).value).toBe(1);
    for (const value of scorer.score(gold).turns.values()) expect(value).toBe(1);
    expect(scorer.score(poor).value).toBeLessThan(1);
  });

  test('says null, not 0, when it cannot tell, and says why', () => {
    const measured = scorer.score(silent);
    expect(measured.value).toBeNull();
    expect(measured.turns.size).toBe(0);
    expect(measured.reason).not.toBe('');
    const nothing = { ...silent, turns: [], signals: [] };
    expect(scorer.score(nothing).value).toBeNull();
  });

  test('keeps every value in 0–1 and speaks only of turns it was given', () => {
    for (const [, input] of cases) {
      const { value, turns } = scorer.score(input);
      const ids = new Set(input.turns.map(({ id }) => id));
      for (const one of [...(value === null ? [] : [value]), ...turns.values()]) {
        expect(one).toBeGreaterThanOrEqual(0);
        expect(one).toBeLessThanOrEqual(1);
      }
      for (const id of turns.keys()) expect(ids.has(id)).toBe(true);
    }
  });

  test('does not care in which order turns and signals come', () => {
    for (const [, input] of cases) {
      const reversed = { ...input, turns: [...input.turns].reverse(), signals: [...input.signals].reverse() };
      expect(plain(scorer.score(reversed))).toEqual(plain(scorer.score(input)));
    }
  });

  test('changes nothing it is given, and gives the same answer twice', () => {
    for (const [, input] of cases) {
      const before = structuredClone(input);
      const first = plain(scorer.score(input));
      expect(input).toEqual(before);
      expect(plain(scorer.score(input))).toEqual(first);
    }
  });
}
