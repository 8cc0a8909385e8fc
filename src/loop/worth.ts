/**
 * Whether the loop is worth it, by what is measured. Two questions, both pure:
 *
 * go      may a loop be turned here at all: enough traffic, enough golden cases, and not at a loss
 * money   what turning it cost, what it saved, and when that pays back
 *
 * A number that nobody measured is no failure and no pass: it says what would measure it.
 */
export type Turned = {
  readonly promoted: boolean;
  /** Difference of success on golden cases; null: it was not evaluated. */
  readonly gain: number | null;
  readonly money: number;
};

export type WorthFacts = {
  /** Conversations of all time, counted up to some limit. */
  readonly traces: number;
  readonly golden: number | null;
  readonly turns: readonly Turned[];
  readonly judgingMoney: number;
  readonly conversationsPerWeek: number;
  /** What one more solved conversation is worth (`loop.successWorth`). */
  readonly successWorth: number | null;
  /** `train.moneyPerHour`: without it, training is not counted. */
  readonly moneyPerHour: number | null;
};

export type Money = {
  readonly cost: number;
  /** What the promoted gains bring in a week at today's traffic; null: nobody said what a success is worth. */
  readonly savedPerWeek: number | null;
  /** What twelve weeks bring for each unit it cost; null: unknown, or it cost nothing. */
  readonly return: number | null;
  readonly paybackWeeks: number | null;
  /** Why something above is null. */
  readonly unmeasured: readonly string[];
};

export const returnWeeks = 12;

export function moneyOf(facts: WorthFacts): Money {
  const { turns, judgingMoney, conversationsPerWeek, successWorth, moneyPerHour } = facts;
  const cost = turns.reduce((sum, { money }) => sum + money, judgingMoney);
  const gained = turns.reduce((sum, { promoted, gain }) => sum + (promoted ? (gain ?? 0) : 0), 0);
  const savedPerWeek = successWorth === null ? null : gained * conversationsPerWeek * successWorth;
  const unmeasured = [
    ...(successWorth === null
      ? ['What a solved conversation is worth is not set: `loop: { successWorth: 4 }` in the agent’s file.']
      : []),
    ...(moneyPerHour === null
      ? ['What an hour of training costs is not set: `train: { moneyPerHour: 2 }` in the agent’s file.']
      : []),
  ];
  return {
    cost,
    savedPerWeek,
    return: savedPerWeek === null || cost <= 0 ? null : (savedPerWeek * returnWeeks) / cost,
    paybackWeeks: savedPerWeek === null || savedPerWeek <= 0 ? null : cost / savedPerWeek,
    unmeasured,
  };
}

export type GoCheck = {
  readonly name: string;
  readonly value: number | null;
  /** From here it is a go. */
  readonly threshold: number;
  readonly end: 'pass' | 'fail' | 'inconclusive' | 'unmeasured';
  /** What would make it pass; null: it does. */
  readonly wayOut: string | null;
};

export type Go = {
  /** `no-go`: something speaks against it; `go`: everything speaks for it. */
  readonly verdict: 'go' | 'not yet' | 'no-go';
  readonly checks: readonly GoCheck[];
  readonly phase: {
    readonly name: 'pilot' | 'first turn' | 'continuous';
    /** What this phase is meant to take and to bring. */
    readonly traces: number;
    readonly money: number | null;
    readonly gain: number | null;
  };
};

const phases = {
  pilot: { name: 'pilot', traces: 500, money: 500, gain: 0.03 },
  first: { name: 'first turn', traces: 5_000, money: 12_000, gain: 0.1 },
  continuous: { name: 'continuous', traces: 5_000, money: null, gain: null },
} as const;

export function goOf(facts: WorthFacts, money: Money): Go {
  const { traces, golden, turns } = facts;
  const checks: GoCheck[] = [
    {
      ...{ name: 'conversations', value: traces, threshold: 2_000 },
      end: traces > 2_000 ? 'pass' : traces < 1_000 ? 'fail' : 'inconclusive',
      wayOut:
        traces > 2_000
          ? null
          : 'Send more of the agent’s traffic through the gateway, or bring recorded conversations: pawl trajectories import FILE.',
    },
    {
      ...{ name: 'golden cases', value: golden, threshold: 100 },
      end: golden === null ? 'unmeasured' : golden > 100 ? 'pass' : 'inconclusive',
      wayOut:
        golden === null
          ? 'Name a golden file in the agent’s `evaluate.golden` and evaluate once: pawl evaluate.'
          : golden > 100
            ? null
            : 'Have experts write more cases: with fewer than 100 only large differences can be seen.',
    },
    {
      ...{ name: 'return', value: money.return, threshold: 1.5 },
      end:
        money.return === null
          ? 'unmeasured'
          : money.return >= 1.5
            ? 'pass'
            : money.return < 0
              ? 'fail'
              : 'inconclusive',
      wayOut:
        money.return === null
          ? (money.unmeasured[0] ?? 'Turn the loop once: nothing was spent yet.')
          : money.return >= 1.5
            ? null
            : 'Turn less often, train smaller, or judge with a cheaper model.',
    },
  ];
  const phase = turns.some(({ promoted }) => promoted)
    ? phases.continuous
    : traces >= phases.first.traces
      ? phases.first
      : phases.pilot;
  const verdict = checks.some(({ end }) => end === 'fail')
    ? 'no-go'
    : checks.every(({ end }) => end === 'pass')
      ? 'go'
      : 'not yet';
  return { verdict, checks, phase };
}
