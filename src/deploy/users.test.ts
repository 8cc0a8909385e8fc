import { describe, expect, it } from 'vitest';
import type { Sample, Served } from './slice.ts';
import { usersFrom } from './users.ts';

const share = (ones: number, n: number): Sample => ({ n, sum: ones, squares: ones });
const served = (outcome: Sample, yes: Sample, no: Sample, types: Record<string, Sample> = {}): Served => ({
  outcome,
  slices: [
    { dimension: 'personal data', name: 'yes', outcome: yes },
    { dimension: 'personal data', name: 'no', outcome: no },
    ...Object.entries(types).map(([name, of]) => ({ dimension: 'task type', name, outcome: of }) as const),
  ],
});

describe('what users got', () => {
  const before = served(share(40, 100), share(4, 28), share(36, 72), { refund: share(20, 50), odd: share(1, 9) });
  const baseline = served(share(20, 50), share(2, 14), share(18, 36), { refund: share(10, 25), late: share(0, 1) });
  const after = served(share(35, 50), share(9, 14), share(26, 36), { refund: share(18, 25) });
  const users = usersFrom('resolved', before, baseline, after);

  it('is the share that succeeded before, beside the candidate and with it, each with Wilson’s interval', () => {
    expect(users.outcome).toBe('resolved');
    expect(users.all.before).toMatchObject({ n: 100, success: 0.4 });
    // Wilson, 40 of 100: (0.4 + 0.0192 ± 1.96·√(0.0024 + 0.000096)) / 1.0384
    expect(users.all.before!.interval[0]).toBeCloseTo(0.3094, 3);
    expect(users.all.before!.interval[1]).toBeCloseTo(0.498, 3);
    expect([users.all.baseline, users.all.after]).toMatchObject([{ n: 50 }, { n: 50, success: 0.7 }]);
  });

  it('is told for each slice with a tenth of all 200 users, largest first', () => {
    expect(users.slices.map(({ slice, before: b, after: a }) => [slice, b?.success, a?.n])).toEqual([
      ['task type refund', 0.4, 25],
      ['without personal data', 0.5, 36],
      ['with personal data', expect.closeTo(4 / 28, 10), 14],
    ]);
  });

  it('has no figure where nobody was', () => {
    const nobody = served(share(0, 0), share(0, 0), share(0, 0));
    const notDeployed = usersFrom('resolved', before, nobody, nobody);
    expect(notDeployed.all).toMatchObject({ before: { n: 100 }, baseline: null, after: null });
    expect(notDeployed.slices[0]).toMatchObject({ slice: 'task type refund', after: null });
  });
});
