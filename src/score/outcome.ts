/**
 * A measured production outcome by name: was the ticket resolved, how many hours did it take. The newest value stands,
 * since outcomes are corrected. Outcomes come late, so none yet is unmeasured, not a failure.
 */
import type { Signal } from '../collect/signal.ts';
import { type ComputingScorer, unmeasured } from './scorer.ts';

export type OutcomeRange = {
  /** The measured value that is worth 0, e.g. 48 hours. */
  readonly worst: number;
  /** The measured value that is worth 1, e.g. 0 hours. */
  readonly best: number;
};

const isNewer = (a: Signal, b: Signal): boolean => a.at > b.at || (a.at === b.at && a.identity > b.identity);

/** Without a range the value itself must be in 0–1 (false and true arrive as 0 and 1). */
export function outcome(name: string, range?: OutcomeRange): ComputingScorer {
  const { worst, best } = range ?? { worst: 0, best: 1 };
  if (!Number.isFinite(worst) || !Number.isFinite(best) || worst === best)
    throw new Error(`The range of outcome '${name}' goes from ${worst} to ${best}; give two different numbers.`);
  const worth = (value: number): number | null => {
    const share = (value - worst) / (best - worst);
    if (range) return Math.min(1, Math.max(0, share));
    return share >= 0 && share <= 1 ? share : null;
  };
  return {
    name: `outcome ${name}`,
    version: JSON.stringify(['outcome', 1, name, worst, best, range !== undefined]),
    score({ turns, signals }) {
      const mine = new Set(turns.map(({ id }) => id));
      const latest = new Map<string, Signal>(); // by turn, '' for the whole
      for (const signal of signals) {
        if (signal.kind !== 'outcome' || signal.name !== name || signal.value === null) continue;
        const { target } = signal;
        for (const about of target.kind === 'turn' && mine.has(target.id) ? ['', target.id] : ['']) {
          const known = latest.get(about);
          if (known === undefined || isNewer(signal, known)) latest.set(about, signal);
        }
      }
      const whole = latest.get('');
      if (whole === undefined) return unmeasured(`no outcome '${name}' yet`);
      const value = worth(whole.value!);
      if (value === null)
        return unmeasured(`'${name}' is ${whole.value}, outside 0–1; say what is worst and best in the reward spec`);
      const perTurn = [...latest].flatMap(([turn, signal]): [string, number][] => {
        const worthOfTurn = worth(signal.value!);
        return turn === '' || worthOfTurn === null ? [] : [[turn, worthOfTurn]];
      });
      return { value, reason: `'${name}' is ${whole.value}`, turns: new Map(perTurn) };
    },
  };
}
