/**
 * Whether the rules of a rollout keep their word: the functions that decide (checks, promotion, decide.ts, moves) under simulated
 * users, 1,000 rollouts a scenario, with the default settings but for the rule where one is named. Each user comes once, in
 * 3 calls; the rollout is looked at after every 20 users. The outcome's mean is 0.7, 2% of calls fail, a fifth of users vote.
 *
 *   aa_promoted                 superiority, candidate = baseline, 2,000 users: promoted all the same
 *   regress5_promoted           non-inferiority (the default), the outcome 5 points worse, 2,000 users: promoted all the same
 *   improve10_promoted          superiority, 10 points better, 2,000 users: promoted
 *   errors2x_rollback_requests  errors double: the candidate's calls until it is rolled back, median
 *   aa_rollback                 candidate = baseline through all steps, 8,000 users: rolled back all the same
 *
 * `--rollouts 200` for a quick look. Progress on stderr; the last line of stdout is one JSON object.
 */
import { parseArgs } from 'node:util';
import { judge } from '../src/deploy/checks/all.ts';
import { decide } from '../src/deploy/decide.ts';
import { promotionStanding } from '../src/deploy/promotion.ts';
import { moved, type Rollout, type RolloutSettings, rolloutSettings, weightOf } from '../src/deploy/rollout.ts';
import type { Dimension, Sample } from '../src/deploy/slice.ts';
import { random } from '../src/simulate/random.ts';

const { values } = parseArgs({ options: { rollouts: { type: 'string', default: '1000' } } });
const rollouts = Number(values.rollouts);
if (!Number.isInteger(rollouts) || rollouts < 10) throw new Error(`--rollouts ${values.rollouts}: give 10 or more.`);

type Kind = { readonly success: number; readonly errors: number };
type Scenario = {
  readonly name: string;
  readonly rule: RolloutSettings['promotion']['rule'];
  readonly candidate: Kind;
  readonly users: number;
  readonly usersADay: number;
};
const baseline: Kind = { success: 0.7, errors: 0.02 };
const scenarios: readonly Scenario[] = [
  { name: 'aa_promoted', rule: 'superiority', candidate: baseline, users: 2000, usersADay: 500 },
  {
    ...{ name: 'regress5_promoted', rule: 'non-inferiority', users: 2000, usersADay: 500 },
    candidate: { ...baseline, success: 0.65 },
  },
  {
    ...{ name: 'improve10_promoted', rule: 'superiority', users: 2000, usersADay: 500 },
    candidate: { ...baseline, success: 0.8 },
  },
  {
    ...{ name: 'errors2x', rule: 'checks', users: 40_000, usersADay: 10_000 },
    candidate: { ...baseline, errors: 0.04 },
  },
  { name: 'aa_rollback', rule: 'checks', candidate: baseline, users: 8000, usersADay: 2000 },
];

const callsPerUser = 3;
const lookEvery = 20;
const types = ['billing', 'delivery', 'returns', 'account'];
const languages = ['en', 'en', 'ko', 'de'];
const lengths = ['up to 60', '61 to 250', '251 to 1000'];

type Tally = { n: number; sum: number; squares: number };
const tally = (): Tally => ({ n: 0, sum: 0, squares: 0 });
const count = (into: Tally, value: number) => {
  into.n++;
  into.sum += value;
  into.squares += value * value;
};

/** What the users of one release got in one window; latencies in classes of 2%. */
class Side {
  units = 0;
  calls = 0;
  errors = 0;
  outcome = tally();
  feedback = tally();
  slices = new Map<string, Tally>();
  latencies = new Map<number, number>();

  add(other: Side): void {
    this.units += other.units;
    this.calls += other.calls;
    this.errors += other.errors;
    const into = (a: Tally, b: Sample) => {
      a.n += b.n;
      a.sum += b.sum;
      a.squares += b.squares;
    };
    into(this.outcome, other.outcome);
    into(this.feedback, other.feedback);
    for (const [key, sample] of other.slices) into(this.slice(key), sample);
    for (const [at, n] of other.latencies) this.latencies.set(at, (this.latencies.get(at) ?? 0) + n);
  }

  slice(key: string): Tally {
    const found = this.slices.get(key) ?? tally();
    this.slices.set(key, found);
    return found;
  }

  user(kind: Kind, rng: ReturnType<typeof random>): void {
    this.units++;
    for (let call = 0; call < callsPerUser; call++) {
      this.calls++;
      if (rng.chance(kind.errors)) this.errors++;
      else {
        const normal = Math.sqrt(-2 * Math.log(1 - rng.next())) * Math.cos(2 * Math.PI * rng.next());
        const at = Math.round((Math.log(1000) + 0.5 * normal) / 0.02);
        this.latencies.set(at, (this.latencies.get(at) ?? 0) + 1);
      }
    }
    const value = rng.chance(kind.success) ? 1 : 0;
    count(this.outcome, value);
    count(this.slice(`task type/${rng.pick(types)}`), value);
    count(this.slice(`personal data/${rng.chance(0.3) ? 'yes' : 'no'}`), value);
    count(this.slice(`language/${rng.pick(languages)}`), value);
    count(this.slice(`length/${rng.pick(lengths)}`), value);
    if (rng.chance(0.2)) count(this.feedback, rng.chance(value === 1 ? 0.9 : 0.4) ? 1 : 0);
  }

  get p99Ms(): number {
    const all = [...this.latencies].sort(([a], [b]) => b - a);
    let above = 0.01 * (this.calls - this.errors);
    for (const [at, n] of all) {
      above -= n;
      if (above < 0) return Math.exp(at * 0.02);
    }
    return 0;
  }

  slowerThan(ms: number): number {
    let slow = 0;
    for (const [at, n] of this.latencies) if (Math.exp(at * 0.02) > ms) slow += n;
    return slow;
  }

  get served() {
    const slices = [...this.slices].map(([key, outcome]) => {
      const [dimension, name] = key.split('/') as [Dimension, string];
      return { dimension, name, outcome };
    });
    return { outcome: this.outcome, slices };
  }
}

/** As measure.ts and the checks measure it. */
function measured(before: Side, after: Side, settings: RolloutSettings, share: number) {
  const { latencyRatio, latencySlackMs } = settings;
  const limitMs = Math.max(before.p99Ms * latencyRatio, before.p99Ms + latencySlackMs);
  return {
    ratio: { baseline: before.units, candidate: after.units, share },
    errors: { baseline: before, candidate: after },
    latency: {
      ...{ baseline: before.calls, candidate: after.calls - after.errors },
      slow: before.calls === 0 ? null : { limitMs, count: after.slowerThan(limitMs) },
    },
    outcome: { baseline: before.outcome, candidate: after.outcome },
    slice: { baseline: before.served, candidate: after.served },
    feedback: { baseline: before.feedback, candidate: after.feedback },
  };
}

function play({ name, rule, candidate, users, usersADay }: Scenario, seed: number) {
  const rng = random(`${name} ${seed}`);
  const settings = rolloutSettings.parse({ promotion: { rule } });
  let rollout: Rollout = {
    ...{ id: 'r', agent: 'a', baseline: 'v1', candidate: 'v2', report: null, phase: 'canary', step: 0, settings },
    ...{ reasons: [], stepsAt: [0], looks: [], version: 1, createdAt: 0, startedAt: 0, stepSince: 0, endedAt: null },
  };
  const steps: { baseline: Side; candidate: Side }[] = [{ baseline: new Side(), candidate: new Side() }];
  const before = new Side(); // the baseline's earlier steps, for the last
  let calls = 0;
  for (let user = 1; user <= users && rollout.phase === 'canary'; user++) {
    const now = (user / usersADay) * 86_400_000;
    const step = steps.at(-1)!;
    const share = weightOf(rollout);
    const isIn = rng.chance(share);
    if (isIn) calls += callsPerUser;
    step[isIn ? 'candidate' : 'baseline'].user(isIn ? candidate : baseline, rng);
    if (user % lookEvery !== 0) continue;
    const checks = judge(
      measured(share < 1 ? step.baseline : before, step.candidate, settings, share),
      settings,
      rollout.step,
    );
    const outcomes = steps.flatMap((one, i) =>
      settings.steps[i]! < 1 ? [{ baseline: one.baseline.outcome, candidate: one.candidate.outcome }] : [],
    );
    const promotion = promotionStanding(outcomes, rollout.looks, settings, now);
    const decision = decide(rollout, { checks, promotion }, now);
    if (decision.kind === 'hold') continue;
    const last = rollout.step;
    rollout = moved(rollout, decision.kind, decision.reasons, now, decision.look);
    if (rollout.step === last) continue;
    before.add(step.baseline);
    steps.push({ baseline: new Side(), candidate: new Side() });
    // Everybody has it now: that the question was answered is all that is asked here, but for whole rollouts.
    if (weightOf(rollout) === 1 && rule !== 'checks') return { end: 'promoted', calls };
  }
  return { end: rollout.phase, calls };
}

const shareOf = (ends: readonly { readonly end: string }[], end: string) =>
  ends.filter((one) => one.end === end).length / ends.length;
const results = new Map<string, { readonly end: string; readonly calls: number }[]>();
for (const scenario of scenarios) {
  const began = performance.now();
  const ends = Array.from({ length: rollouts }, (_, seed) => play(scenario, seed));
  results.set(scenario.name, ends);
  const told = ['promoted', 'rolled-back', 'paused', 'canary'].map((end) => `${end} ${shareOf(ends, end)}`);
  console.error(`${scenario.name}: ${told.join(', ')} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
}
const errors2x = results
  .get('errors2x')!
  .map(({ end, calls }) => (end === 'rolled-back' ? calls : Number.POSITIVE_INFINITY))
  .sort((a, b) => a - b);
console.log(
  JSON.stringify({
    rollouts,
    aa_promoted: shareOf(results.get('aa_promoted')!, 'promoted'),
    regress5_promoted: shareOf(results.get('regress5_promoted')!, 'promoted'),
    improve10_promoted: shareOf(results.get('improve10_promoted')!, 'promoted'),
    errors2x_rollback_requests: errors2x[Math.floor(errors2x.length / 2)],
    aa_rollback: shareOf(results.get('aa_rollback')!, 'rolled-back'),
  }),
);
