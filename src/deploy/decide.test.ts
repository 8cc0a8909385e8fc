import { describe, expect, it } from 'vitest';
import { random } from '../simulate/random.ts';
import type { Said } from '../store/measures.ts';
import { judge } from './checks/all.ts';
import { type Decision, decide } from './decide.ts';
import { halfWidth, rateEvidence } from './evidence.ts';
import { promotionStanding } from './promotion.ts';
import { moved, type Rollout, rolloutSettings } from './rollout.ts';
import type { Sample, Served } from './slice.ts';

const settings = rolloutSettings.parse({
  ...{
    holdSeconds: 100,
    patienceSeconds: 1000,
    minTurns: 50,
    minUnits: 20,
    promotion: { rule: 'checks' },
    shadow: { share: 0 },
  },
});
const canary: Rollout = {
  ...{ id: 'r1', agent: 'desk', baseline: 'a', candidate: 'b', report: null, phase: 'canary', step: 0, settings },
  ...{ reasons: [], stepsAt: [0], looks: [], version: 1, createdAt: 0, startedAt: 0, stepSince: 0, endedAt: null },
};

/** `ones` of `n` users had 1, the others 0. */
const share = (ones: number, n: number): Sample => ({ n, sum: ones, squares: ones });
const none = share(0, 0);
type Release = Said & { readonly calls: number; readonly errors: number };
const good: Release = {
  calls: 1000,
  errors: 5,
  outcome: share(140, 200),
  feedback: share(80, 100),
  slices: [],
};
type Slow = { readonly limitMs: number; readonly count: number; readonly of: number } | null;
/** As the checks measure it. */
const sides = (baseline: Release, candidate: Release, slow: Slow) => ({
  ratio: { baseline: 950, candidate: 50, share: 0.05 },
  errors: { baseline, candidate },
  latency: { baseline: baseline.calls, candidate: slow?.of ?? candidate.calls, slow },
  outcome: { baseline: baseline.outcome, candidate: candidate.outcome },
  slice: { baseline, candidate },
  feedback: { baseline: baseline.feedback, candidate: candidate.feedback },
});
const measured = (candidate: Partial<Release>, slow: Slow = null, baseline = good) => {
  const all = { ...good, ...candidate };
  return sides(baseline, all, slow ?? { limitMs: 650, count: 0, of: all.calls - all.errors });
};
const nothing: Release = { calls: 0, errors: 0, outcome: none, feedback: none, slices: [] };
const silence = sides(nothing, nothing, null);
const next = (rollout: Rollout, measurements: ReturnType<typeof sides>, now: number): Decision =>
  decide(
    rollout,
    {
      checks: judge(measurements, rollout.settings, rollout.step),
      promotion: promotionStanding([measurements.outcome], rollout.looks, rollout.settings, now),
    },
    now,
  );
const after = 100_000; // ms: the hold is over

describe('deciding', () => {
  it('holds a young step however good it looks', () => {
    expect(next(canary, measured({}), 99_000).kind).toBe('hold');
    expect(next(canary, measured({}), after).kind).toBe('advance');
  });

  it('holds without traffic: a quiet night is neither a failure nor a pass', () => {
    const decision = next(canary, silence, after);
    expect(decision.kind).toBe('hold');
    expect(decision.checks.map(({ end }) => end)).toEqual(['pass', ...Array(4).fill('unmeasured')]);
    expect(decision.reasons[0]).toBe('Too few calls to tell: baseline 0, candidate 0, each needs 50.');
  });

  it('asks a person when a step has waited too long for data', () => {
    expect(next(canary, silence, 999_000).kind).toBe('hold');
    expect(next(canary, silence, 1_000_000).kind).toBe('pause');
  });

  it('does not go on while the outcome is not known yet, good calls or not', () => {
    expect(next(canary, measured({ outcome: share(15, 19) }), after)).toMatchObject({
      kind: 'hold',
      reasons: ['Too few users with resolved to tell: baseline 200, candidate 19, each needs 20.'],
    });
  });

  it('goes on without votes, which not every agent’s users give', () => {
    expect(next(canary, measured({ feedback: none }), after).kind).toBe('advance');
  });

  it('walks a good candidate 5 → 25 → 50 → 100% → promoted', () => {
    let rollout = canary;
    const kinds: string[] = [];
    for (let now = after; rollout.phase === 'canary'; now += after) {
      const { kind, reasons } = next(rollout, measured({ outcome: share(170, 200) }), now);
      kinds.push(kind);
      if (kind === 'hold') throw new Error(reasons.join(' '));
      rollout = moved(rollout, kind, reasons, now);
    }
    expect(kinds).toEqual(['advance', 'advance', 'advance', 'promote']);
    expect(rollout.phase).toBe('promoted');
  });

  it('rolls back a candidate whose calls fail, at once', () => {
    // 20 of 60 calls failed where the baseline fails 5 of 1000.
    const decision = next(canary, measured({ calls: 60, errors: 20 }), 1000);
    expect(decision.kind).toBe('rollback');
    expect(decision.reasons).toEqual([
      'Errors: candidate 20 of 60 calls, baseline 5 of 1000; more than 1.5 × the baseline’s rate, and chance does not explain it.',
    ]);
  });

  it('rolls back a candidate whose users get less done', () => {
    // 8 of 40 users against 140 of 200.
    const decision = next(canary, measured({ outcome: share(8, 40) }), 1000);
    expect(decision.kind).toBe('rollback');
    expect(decision.reasons[0]).toMatch(/^resolved: candidate 0\.200 of 40 users, baseline 0\.700 of 200; worse/);
  });

  it('rolls back a candidate that is slow', () => {
    expect(next(canary, measured({}, { limitMs: 650, count: 60, of: 900 }), 1000).kind).toBe('rollback');
    expect(next(canary, measured({}, { limitMs: 650, count: 9, of: 900 }), after).kind).toBe('advance');
  });

  it('rolls back a candidate that users vote down', () => {
    expect(next(canary, measured({ feedback: share(20, 100) }), 1000).kind).toBe('rollback');
  });

  it('waits when it is worse by more than the margin but not certainly so', () => {
    const decision = next(canary, measured({ outcome: share(18, 30) }), after);
    expect(decision.kind).toBe('hold');
    expect(decision.reasons[0]).toMatch(/0\.600 of 30 users.*perhaps worse: not certain yet/);
  });

  it('takes failing before all else: before the hold, before pausing, and while paused', () => {
    const bad = measured({ calls: 60, errors: 20, outcome: none });
    expect(next(canary, bad, 1).kind).toBe('rollback');
    expect(next(canary, bad, 2_000_000).kind).toBe('rollback');
    expect(next({ ...canary, phase: 'paused' }, bad, 1).kind).toBe('rollback');
    expect(next({ ...canary, phase: 'paused' }, measured({}), 2_000_000).kind).toBe('hold');
  });

  it('does nothing to a rollout that waits or has ended', () => {
    const bad = measured({ calls: 60, errors: 20 });
    for (const phase of ['waiting', 'promoted', 'rolled-back'] as const)
      expect(next({ ...canary, phase }, bad, after).kind).toBe('hold');
  });
});

describe('the shares of users', () => {
  it('that are not as drawn hold everything, and are told', () => {
    const skewed = { ...measured({}), ratio: { baseline: 900, candidate: 100, share: 0.05 } };
    expect(next(canary, skewed, after)).toMatchObject({
      kind: 'hold',
      reasons: [expect.stringMatching(/^Users: 100 of 1000 have had the candidate, where 5% should; chance does not/)],
    });
    expect(next(canary, skewed, 1_000_000).kind).toBe('pause');
  });

  it('are not looked at where there is nobody to compare with', () => {
    const all = { ...measured({}), ratio: { baseline: 0, candidate: 100, share: 1 } };
    expect(next({ ...canary, step: 3 }, all, after).kind).toBe('promote');
  });
});

describe('errors', () => {
  it('that are certainly more, but by less than the ratio, take nobody back', () => {
    // 2.4% against 2%: certain with 100,000 calls each, and 1.2 times as many.
    const more = measured({ calls: 100_000, errors: 2400 }, null, { ...good, calls: 100_000, errors: 2000 });
    expect(next(canary, more, after).checks[1]).toMatchObject({ name: 'errors', end: 'pass' });
  });
});

describe('slices of users', () => {
  const personal = (yes: Sample, no: Sample): Served['slices'] => [
    { dimension: 'personal data', name: 'yes', outcome: yes },
    { dimension: 'personal data', name: 'no', outcome: no },
  ];
  const compared = (before: Served['slices'], candidate: Partial<Release>, after: Served['slices']) =>
    measured({ ...candidate, slices: after }, null, { ...good, slices: before });

  it('that get worse take a candidate back that is better on the whole, and are named', () => {
    // 140 of 200 users before; 170 of 200 with the candidate, but of those with personal data 2 of 40 where it was 30 of 40.
    const worse = compared(
      personal(share(30, 40), share(110, 160)),
      { outcome: share(170, 200) },
      personal(share(2, 40), share(168, 160)),
    );
    const decision = next(canary, worse, 1000);
    expect(decision.kind).toBe('rollback');
    expect(decision.reasons).toEqual([
      'resolved, with personal data: candidate 0.050 of 40 users, baseline 0.750 of 40; worse, and chance does not explain it.',
    ]);
  });

  it('are looked at only where a tenth of the users is in them', () => {
    // 2 × 19 of 400 users.
    const few = compared(personal(share(19, 19), share(121, 181)), {}, personal(share(0, 19), share(140, 181)));
    expect(judge(few, { ...settings, minUnits: 5 }, 0).filter(({ name }) => name === 'slice')).toHaveLength(1);
    expect(next({ ...canary, settings: { ...settings, minUnits: 5 } }, few, after).kind).toBe('advance');
  });

  it('tell nothing where all users are alike', () => {
    const alike = [{ dimension: 'personal data', name: 'yes', outcome: good.outcome }] as const;
    expect(judge(compared(alike, {}, alike), settings, 0).map(({ name }) => name)).toEqual([
      ...['ratio', 'errors', 'latency', 'outcome', 'feedback'],
    ]);
  });

  it('with too few users hold nothing up, and are named', () => {
    const thin = compared(personal(share(30, 40), share(110, 160)), {}, personal(share(9, 10), share(131, 190)));
    const decision = next(canary, thin, after);
    expect(decision.kind).toBe('advance');
    expect(decision.reasons.slice(-3)).toEqual([
      expect.stringMatching(/^resolved, without personal data: .*; not worse\.$/),
      expect.stringMatching(/^feedback: .*; not worse\.$/),
      'Too few users with resolved, with personal data to tell: baseline 40, candidate 10, each needs 20.',
    ]);
  });

  it('that are all fine are told in a word', () => {
    const fine = personal(share(30, 40), share(110, 160));
    expect(next(canary, compared(fine, {}, fine), after).reasons).toContain('None of the 2 slices measured is worse.');
  });

  it('that look worse are waited for, and in the end a person is asked', () => {
    // 30 of 40 against 18 of 40: 2.8 standard errors, past the 1.64 of a 10% test shared by two.
    const perhaps = compared(personal(share(30, 40), share(110, 160)), {}, personal(share(18, 40), share(122, 160)));
    const decision = next(canary, perhaps, after);
    expect(decision.kind).toBe('hold');
    expect(decision.reasons).toEqual([
      'resolved, with personal data: candidate 0.450 of 40 users, baseline 0.750 of 40; perhaps worse: not certain yet.',
    ]);
    expect(next(canary, perhaps, 1_000_000).kind).toBe('pause');
  });

  it('seldom take an equal candidate back: ten of them, looked at after every hundred users of 4000', () => {
    // The second of four steps has 5/24 of α = 0.05, and this is one kind of check of five: 200 × 0.05 × 5/24 / 5 < 1.
    const rng = random('equal slices');
    const types = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    let accused = 0;
    for (let run = 0; run < 200; run++) {
      const empty = () => new Map<string, { n: number; sum: number; squares: number }>();
      const both = [empty(), empty()];
      for (let user = 0; user < 4000; user++) {
        const value = rng.chance(0.5) ? 1 : 0;
        for (const key of ['', `task type/${rng.pick(types)}`, `personal data/${rng.chance(0.3) ? 'yes' : 'no'}`]) {
          const side = both[user % 2]!;
          const { n, sum, squares } = side.get(key) ?? none;
          side.set(key, { n: n + 1, sum: sum + value, squares: squares + value });
        }
        if (user % 100 !== 99) continue;
        const [baseline, candidate] = both.map((side): Release => {
          const slices = [...side].flatMap(([key, outcome]) => {
            const [dimension, name] = key.split('/') as ['task type' | 'personal data', string];
            return key === '' ? [] : [{ dimension, name, outcome }];
          });
          return { ...good, outcome: side.get('')!, slices };
        });
        const all = judge(sides(baseline!, candidate!, null), settings, 1);
        if (all.some(({ name, end }) => name === 'slice' && end === 'fail')) {
          accused++;
          break;
        }
      }
    }
    expect(accused).toBeLessThanOrEqual(1);
  });
});

describe('the tests behind it', () => {
  it('count errors by whose they are: three, all the candidate’s, at 5% of the traffic', () => {
    // Each would be the candidate's with probability 50 / (50 + 950) = 0.05. Were its rate 40 times as high, with 0.678.
    expect(rateEvidence(0, 0, 0.05)).toBe(1);
    expect(rateEvidence(3, 3, 0.05)).toBeGreaterThan((0.678 / 0.05) ** 3 / 6);
    const few = judge(measured({ calls: 50, errors: 3 }, null, { ...good, calls: 950, errors: 0 }), settings, 0);
    expect(few[1]!.end).toBe('fail');
  });

  it('find one error of fifty calls compatible with a baseline of none', () => {
    const one = judge(measured({ calls: 500, errors: 1 }, null, { ...good, calls: 500, errors: 0 }), settings, 0);
    expect(one[1]!.end).toBe('pass');
  });

  it('seldom accuse an equal candidate, looked at after every user of 2000', () => {
    // 200 rollouts of one step and one check at α = 0.05: at most 5% may ever fail; 10 expected at the very most.
    const rng = random('equal');
    let accused = 0;
    for (let run = 0; run < 200; run++) {
      const a = { n: 0, sum: 0, squares: 0 };
      const b = { n: 0, sum: 0, squares: 0 };
      for (let user = 0; user < 1000; user++) {
        for (const side of [a, b]) {
          const value = rng.chance(0.7) ? 1 : 0;
          side.n++;
          side.sum += value;
          side.squares += value;
        }
        if (a.n < 20) continue;
        if (b.sum / b.n - a.sum / a.n + halfWidth(a, b, 80, 0.05) < 0) {
          accused++;
          break;
        }
      }
    }
    expect(accused).toBeLessThanOrEqual(10);
  });

  it('find a candidate that solves half instead of seven in ten within 1000 users', () => {
    expect(halfWidth(share(350, 500), share(250, 500), 80, 0.05 / 16)).toBeLessThan(0.2);
  });

  it('do not claim certainty from equal values', () => {
    expect(halfWidth(share(20, 20), share(20, 20), 80, 0.05)).toBe(0); // nothing ever varied, and the difference is 0
    expect(halfWidth(share(20, 20), share(0, 20), 80, 0.05)).toBeGreaterThan(0.1);
  });
});
