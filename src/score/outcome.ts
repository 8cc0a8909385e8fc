/**
 * A measured production outcome by name: was the ticket resolved, how many hours did it take, how much faster is the kernel.
 * The newest value stands, since outcomes are corrected. Outcomes come late, so none yet is unmeasured, not a failure. What a
 * value is worth is declared:
 *
 *   nothing               the value itself, which must be in 0–1 (false and true arrive as 0 and 1)
 *   worst, best           a straight line between the two, whichever is larger
 *   baseline, better      how many times better than the baseline: 0 at the baseline or below, 1 at `full` times (2), and
 *                         log(times) / log(full) between, so that twice as fast twice over counts twice. The baseline is a number
 *                         or the name of another outcome of the same conversation
 *   after                 a gate: another outcome that must reach `min` (1) before this one counts at all. Below it the worth is 0;
 *                         until it has arrived, nothing is known
 */
import type { Signal } from '../collect/signal.ts';
import { type ComputingScorer, type Measured, unmeasured } from './scorer.ts';

export type OutcomeRange = {
  /** The measured value that is worth 0, e.g. 48 hours. */
  readonly worst: number;
  /** The measured value that is worth 1, e.g. 0 hours. */
  readonly best: number;
};
export type OutcomeRatio = {
  readonly baseline: number | string;
  readonly better: 'lower' | 'higher';
  readonly full?: number; // 2
};
export type OutcomeGate = { readonly after?: { readonly outcome: string; readonly min?: number } };
export type OutcomeCurve = (OutcomeRange | OutcomeRatio | Record<never, never>) & OutcomeGate;

const isNewer = (a: Signal, b: Signal): boolean => a.at > b.at || (a.at === b.at && a.identity > b.identity);
const clamp = (share: number): number => Math.min(1, Math.max(0, share));

type Latest = ReadonlyMap<string, number>; // by turn, '' for the whole

/** The newest value of each outcome that is asked for. */
function latestOf(name: string, turns: ReadonlySet<string>, signals: readonly Signal[]): Latest {
  const latest = new Map<string, Signal>();
  for (const signal of signals) {
    if (signal.kind !== 'outcome' || signal.name !== name || signal.value === null) continue;
    const { target } = signal;
    for (const about of target.kind === 'turn' && turns.has(target.id) ? ['', target.id] : ['']) {
      const known = latest.get(about);
      if (known === undefined || isNewer(signal, known)) latest.set(about, signal);
    }
  }
  return new Map([...latest].map(([about, { value }]) => [about, value!]));
}

/** What a value is worth, or why nobody can say. */
type Worth = (value: number, baseline: number | null) => number | string;

function worthOf(name: string, curve: OutcomeCurve): Worth {
  if ('baseline' in curve) {
    const { baseline: declared, better, full = 2 } = curve;
    if (!(full > 1))
      throw new Error(`Outcome '${name}' has full marks at ${full} times its baseline; give more than 1.`);
    if (typeof declared === 'number' && !(declared > 0 && Number.isFinite(declared)))
      throw new Error(`The baseline of outcome '${name}' is ${declared}; give a number above 0.`);
    return (value, baseline) => {
      if (baseline === null) return `no outcome '${declared}' yet, which '${name}' is compared with`;
      if (!(value > 0) || !(baseline > 0))
        return `'${name}' is ${value} against ${baseline}; a ratio needs both above 0`;
      return clamp(Math.log(better === 'lower' ? baseline / value : value / baseline) / Math.log(full));
    };
  }
  if ('worst' in curve) {
    const { worst, best } = curve;
    if (!Number.isFinite(worst) || !Number.isFinite(best) || worst === best)
      throw new Error(`The range of outcome '${name}' goes from ${worst} to ${best}; give two different numbers.`);
    return (value) => clamp((value - worst) / (best - worst));
  }
  return (value) =>
    value >= 0 && value <= 1
      ? value
      : `'${name}' is ${value}, outside 0–1; say what is worst and best in the reward spec`;
}

/** The version of an outcome without a curve or with a range is that of before there were others. */
function versionOf(name: string, curve: OutcomeCurve): string {
  const { after, ...rest } = curve;
  const { worst, best } = 'worst' in rest ? rest : { worst: 0, best: 1 };
  const said = 'baseline' in rest ? [rest.baseline, rest.better, rest.full ?? 2] : [worst, best, 'worst' in rest];
  return JSON.stringify(['outcome', 1, name, ...said, ...(after ? [after.outcome, after.min ?? 1] : [])]);
}

export function outcome(name: string, curve: OutcomeCurve = {}): ComputingScorer {
  const worth = worthOf(name, curve);
  const { after } = curve;
  const baseline = 'baseline' in curve ? curve.baseline : null;
  return {
    name: `outcome ${name}`,
    version: versionOf(name, curve),
    inProcess: true,
    score({ turns, signals }): Measured {
      const mine = new Set(turns.map(({ id }) => id));
      const newest = (of: string): number | null => latestOf(of, mine, signals).get('') ?? null;
      const latest = latestOf(name, mine, signals);
      const whole = latest.get('');
      if (after !== undefined) {
        const { outcome: gate, min = 1 } = after;
        const held = newest(gate);
        if (held === null) return unmeasured(`no outcome '${gate}' yet, which comes before '${name}'`);
        if (held < min)
          return { value: 0, reason: `'${gate}' is ${held}, below ${min}: '${name}' does not count`, turns: new Map() };
      }
      if (whole === undefined) return unmeasured(`no outcome '${name}' yet`);
      const against = typeof baseline === 'string' ? newest(baseline) : baseline;
      const value = worth(whole, against);
      if (typeof value === 'string') return unmeasured(value);
      const perTurn = [...latest].flatMap(([turn, one]): [string, number][] => {
        const worthOfTurn = worth(one, against);
        return turn === '' || typeof worthOfTurn === 'string' ? [] : [[turn, worthOfTurn]];
      });
      const compared = against === null ? '' : `, against ${against}`;
      return { value, reason: `'${name}' is ${whole}${compared}`, turns: new Map(perTurn) };
    },
  };
}
