import { describe, expect, it } from 'vitest';
import { compared, type Look, promotionStanding } from './promotion.ts';
import { rolloutSettings } from './rollout.ts';
import type { Sample } from './slice.ts';

const share = (ones: number, n: number): Sample => ({ n, sum: ones, squares: ones });
const asked = (promotion: object) => rolloutSettings.parse({ promotion });
const superiority = asked({ rule: 'superiority', users: 1000, looks: 2 });
/** Two steps of 250 users a side: 1000 users' worth. */
const steps = (before: number, after: number) =>
  Array(2).fill({ baseline: share(before, 250), candidate: share(after, 250) });

describe('the promotion’s question', () => {
  it('is not asked before there are users enough, and says how many are missing', () => {
    // 10 of 200 users at 5%: 4 · 10·190/200 = 38 users' worth.
    const few = [{ baseline: share(130, 190), candidate: share(9, 10) }];
    expect(promotionStanding(few, [], superiority, 0)).toEqual({
      kind: 'early',
      look: null,
      reason: 'Too few users with resolved to ask whether the candidate is better: 38 of 500 users’ worth.',
    });
  });

  it('is answered by the difference within steps, so that a rise for everybody is no gain', () => {
    // Everybody does better in the second step, where more have the candidate; within each step both are alike.
    const rising = [
      { baseline: share(45, 90), candidate: share(5, 10) },
      { baseline: share(45, 50), candidate: share(45, 50) },
    ];
    expect(compared(rising).difference).toBeCloseTo(0, 12);
  });

  it('is shown at the first look that passes its bound, and stays so', () => {
    // 0.6 against 0.8 of 250 each: difference 0.2, error 0.041 after the first step.
    const { kind, look, reason } = promotionStanding(steps(150, 200).slice(0, 1), [], superiority, 7);
    expect({ kind, look }).toMatchObject({ kind: 'due', look: { at: 7, users: 500, share: 0.5, shown: true } });
    expect(look!.bound).toBeCloseTo(2.963, 2);
    expect(reason).toMatch(/^Look 1, 500 users’ worth: the candidate’s mean is \+0\.200; that it is better is shown/);
    expect(promotionStanding(steps(150, 150), [look!], superiority, 8).kind).toBe('shown');
  });

  it('that is not shown at the last look is not asked again', () => {
    const first: Look = { at: 0, users: 500, share: 0.5, difference: 0, z: 0, bound: 2.96, shown: false };
    expect(promotionStanding(steps(150, 150).slice(0, 1), [first], superiority, 0).kind).toBe('early');
    const { kind, look } = promotionStanding(steps(150, 155), [first], superiority, 0);
    expect(kind).toBe('due');
    expect(look).toMatchObject({ share: 1, shown: false });
    expect(promotionStanding(steps(150, 250), [first, look!], superiority, 0)).toMatchObject({
      kind: 'not shown',
      reason: expect.stringMatching(/that it is better is not shown .* All looks are taken\.$/),
    });
  });

  it('with a margin needs no gain, and with none a loss is none', () => {
    const many = [{ baseline: share(1800, 2500), candidate: share(1800, 2500) }];
    const within = asked({ margin: 0.05, users: 5000, looks: 1 });
    expect(promotionStanding(many, [], within, 0).look).toMatchObject({ shown: true, difference: 0 });
    expect(promotionStanding(many, [], asked({ ...within.promotion, rule: 'superiority' }), 0).look?.shown).toBe(false);
  });

  it('is not asked where there is no outcome, or the checks alone decide', () => {
    expect(promotionStanding([], [], { ...superiority, outcome: null }, 0).kind).toBe('unasked');
    expect(promotionStanding([], [], asked({ rule: 'checks' }), 0).kind).toBe('unasked');
  });

  it('cannot be asked with nobody left to compare with', () => {
    expect(() => rolloutSettings.parse({ steps: [1] })).toThrow(/begin with a smaller step, or set it to checks/);
  });
});
