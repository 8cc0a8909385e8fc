import { describe, expect, it } from 'vitest';
import { isShadowing, moved, phases, type Rollout, rolloutSettings, weightOf } from './rollout.ts';

const rollout: Rollout = {
  id: 'r1',
  agent: 'desk',
  baseline: 'release-a',
  candidate: 'release-b',
  report: null,
  phase: 'waiting',
  step: 0,
  settings: rolloutSettings.parse({ shadow: { share: 0 } }),
  reasons: [],
  stepsAt: [],
  looks: [],
  version: 1,
  createdAt: 0,
  startedAt: null,
  stepSince: null,
  endedAt: null,
};

describe('a rollout', () => {
  it('walks 5 → 25 → 50 → 100% and ends promoted', () => {
    let now = moved(rollout, 'approve', [], 10);
    expect(now).toMatchObject({ phase: 'canary', step: 0, startedAt: 10, stepSince: 10, version: 2 });
    const weights = [weightOf(now)];
    for (const at of [20, 30, 40]) {
      now = moved(now, 'advance', [], at);
      expect(now.stepSince).toBe(at);
      weights.push(weightOf(now));
    }
    expect(weights).toEqual([0.05, 0.25, 0.5, 1]);
    expect(() => moved(now, 'advance', [], 50)).toThrow('Rollout r1 is canary at step 4 and cannot advance.');
    expect(moved(now, 'promote', [], 50)).toMatchObject({ phase: 'promoted', endedAt: 50, startedAt: 10 });
  });

  it('can be ended from every open phase, and from no other', () => {
    for (const phase of phases) {
      const end = () => moved({ ...rollout, phase }, 'abort', ['Somebody said so.'], 9);
      if (phase === 'promoted' || phase === 'rolled-back') expect(end).toThrow(`is ${phase} and cannot abort`);
      else expect(weightOf(end())).toBe(0);
    }
  });

  it('is promoted from wherever it is when a person says so', () => {
    expect(moved(rollout, 'promote', ['Now.'], 7)).toMatchObject({ phase: 'promoted', startedAt: 7, endedAt: 7 });
    expect(() => moved({ ...rollout, phase: 'rolled-back' }, 'promote', [], 7)).toThrow('`pawl releases serve`');
  });

  it('stands still while a person holds it, and begins the same step anew when approved', () => {
    const held = moved({ ...rollout, phase: 'canary', step: 1, startedAt: 1, stepSince: 2 }, 'hold', [], 5);
    expect(held).toMatchObject({ phase: 'paused', stepSince: null });
    expect(weightOf(held)).toBe(0.25);
    expect(moved(held, 'approve', [], 6)).toMatchObject({ phase: 'canary', step: 1, stepSince: 6 });
    expect(() => moved(held, 'hold', [], 6)).toThrow('Rollout r1 is paused and cannot hold.');
  });

  it('keeps its share while paused, and goes on with the next step when approved', () => {
    const paused = moved({ ...rollout, phase: 'canary', step: 1, startedAt: 1, stepSince: 4 }, 'pause', [], 5);
    expect(weightOf(paused)).toBe(0.25);
    expect(weightOf(moved(paused, 'approve', [], 6))).toBe(0.5);
  });

  it('begins in shadow, where nobody gets the candidate, held or paused or not', () => {
    const settings = rolloutSettings.parse({});
    const shadow = moved({ ...rollout, settings }, 'approve', [], 10);
    expect(shadow).toMatchObject({ phase: 'shadow', startedAt: null, stepSince: 10 });
    const held = moved(shadow, 'hold', [], 11);
    for (const one of [shadow, held]) expect([weightOf(one), isShadowing(one)]).toEqual([0, true]);
    expect(moved(held, 'approve', [], 12)).toMatchObject({ phase: 'shadow', stepSince: 12 });
    const begun = { phase: 'canary', step: 0, startedAt: 13, stepsAt: [13] };
    expect(moved(shadow, 'advance', [], 13)).toMatchObject(begun);
    expect(moved(moved(shadow, 'pause', [], 12), 'approve', [], 13)).toMatchObject(begun);
  });

  it('refuses steps that do not grow to everybody', () => {
    for (const steps of [[0.5, 0.25, 1], [0.05, 0.5], [1.5], []])
      expect(rolloutSettings.safeParse({ steps }).success).toBe(false);
    expect(() => rolloutSettings.parse({ hold: 5 })).toThrow(/hold/);
  });
});
