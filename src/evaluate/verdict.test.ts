import { describe, expect, it } from 'vitest';
import { type Comparison, compare } from './compare.ts';
import type { Gate } from './gates/gate.ts';
import { consequence, judge, verdicts } from './verdict.ts';

/** A comparison of tasks: both solved, only the baseline, only the candidate, neither. */
const of = (both: number, lost: number, won: number, neither: number): Comparison =>
  compare([
    ...Array(both).fill({ baseline: 1, candidate: 1 }),
    ...Array(lost).fill({ baseline: 1, candidate: 0 }),
    ...Array(won).fill({ baseline: 0, candidate: 1 }),
    ...Array(neither).fill({ baseline: 0, candidate: 0 }),
  ])!;

describe('a verdict', () => {
  it('is pass when the candidate is better and chance does not explain it', () => {
    const overall = of(50, 5, 40, 5);
    expect(judge({ tasks: 100, overall, types: {} })).toEqual({
      verdict: 'pass',
      reasons: ['The candidate solves 90.0% of the tasks, the baseline 55.0% (p < 0.0001): better, and not by chance.'],
    });
  });

  it('is fail when the mean is below 95% of the baseline, significant or not', () => {
    // 20 → 18 of 30: 90% of the baseline, and p = 0.5 on two lost tasks.
    const judged = judge({ tasks: 30, overall: of(18, 2, 0, 10), types: {} });
    expect(judged.verdict).toBe('fail');
    // 20 → 19: exactly 95% is not below it.
    expect(judge({ tasks: 30, overall: of(19, 1, 0, 10), types: {} }).verdict).toBe('inconclusive');
  });

  it('is inconclusive when the gain may be chance, and says what so many tasks could have shown', () => {
    // 3 won, 1 lost: p = 0.625; 4 of 40 differ.
    const judged = judge({ tasks: 40, overall: of(20, 1, 3, 16), types: {} });
    expect(judged.verdict).toBe('inconclusive');
    // √(7.849 · 0.1 / 47.849) = 0.128
    expect(judged.reasons[0]).toMatch(/p = 0\.6250.*40 tasks can only be relied on to show differences of 12\.8%/);
  });

  it('is inconclusive when one type of task was forgotten, however good the mean', () => {
    const overall = of(50, 8, 40, 2);
    const judged = judge({ tasks: 100, overall, types: { refund: of(2, 8, 0, 5), status: of(48, 0, 40, 0) } });
    expect(judged.verdict).toBe('inconclusive');
    expect(judged.reasons[1]).toMatch(/type refund fell from 66\.7% to 13\.3%/);
  });

  it('does not take a type’s noise for forgetting', () => {
    // 2 of 10 lost is 20 points, but 2 coins on the same side are nothing: 1/4.
    const judged = judge({ tasks: 100, overall: of(50, 5, 40, 5), types: { refund: of(5, 2, 0, 3) } });
    expect(judged.verdict).toBe('pass');
  });

  it('is unmeasured without data: neither a pass nor a failure', () => {
    expect(judge({ tasks: 150, overall: null, types: {} }).verdict).toBe('unmeasured');
    expect(judge({ tasks: 150, overall: of(0, 0, 134, 0), types: {} })).toEqual({
      verdict: 'unmeasured',
      reasons: ['Only 134 of 150 tasks could be played by both models; at least 135 are needed for a verdict.'],
    });
    expect(judge({ tasks: 150, overall: of(0, 0, 135, 0), types: {} }).verdict).toBe('pass');
  });

  it('fails before it worries about types, and worries about types before it passes', () => {
    const types = { refund: of(2, 8, 0, 5) };
    expect(judge({ tasks: 40, overall: of(10, 20, 0, 10), types }).verdict).toBe('fail');
    expect(judge({ tasks: 100, overall: of(50, 8, 40, 2), types }).verdict).toBe('inconclusive');
  });

  it('holds out for the improvement that is asked for', () => {
    const overall = of(80, 0, 8, 12); // + 8 points, p = 0.0078
    expect(judge({ tasks: 100, overall, types: {} }).verdict).toBe('pass');
    expect(judge({ tasks: 100, overall, types: {} }, { improvement: 0.1 }).verdict).toBe('inconclusive');
  });

  it('is fail when a gate fails, however good the mean, and names all that failed', () => {
    const gate = (name: string, verdict: Gate['verdict']): Gate => ({
      ...{ name, verdict, baseline: 1, candidate: 2, limit: 0.3, reason: `${name} says so.`, look: [] },
    });
    const measured = { tasks: 100, overall: of(50, 5, 40, 5), types: {} };
    const judged = judge({
      ...measured,
      gates: [gate('length', 'fail'), gate('drift', 'pass'), gate('parts', 'fail')],
    });
    expect(judged.verdict).toBe('fail');
    expect(judged.reasons.slice(1)).toEqual(['Gate length: length says so.', 'Gate parts: parts says so.']);
    const asked = judge({ ...measured, gates: [gate('parts', 'inconclusive'), gate('drift', 'unmeasured')] });
    expect(asked).toMatchObject({
      verdict: 'inconclusive',
      reasons: [expect.any(String), expect.stringContaining('parts says so')],
    });
    expect(judge({ ...measured, gates: [gate('drift', 'unmeasured')] }).verdict).toBe('pass');
  });

  it('has a consequence, each its own', () => {
    expect(new Set(verdicts.map(consequence)).size).toBe(4);
  });
});
