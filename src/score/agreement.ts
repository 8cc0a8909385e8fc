/**
 * Whether a reward can be trusted: how its total, and each part, order conversations compared with what people say of them
 * (Spearman, with a bootstrap interval). Below 0.7 is an alarm. Few labels, or labels that are all alike, say nothing, and nothing
 * is neither good nor bad. Pure.
 */
import type { Judged } from '../store/judged.ts';
import { spearman } from './ranks.ts';
import { bootstrap, groupsOf } from './resample.ts';

/** What the correlation must reach. */
export const trustBar = 0.7;
/** Fewer labels than this say nothing. */
export const fewestLabels = 10;

export type Agreement = {
  /** null: the total. */
  readonly part: string | null;
  /** Conversations that have both. */
  readonly labels: number;
  readonly spearman: number | null;
  readonly low: number | null;
  readonly high: number | null;
  readonly state: 'ok' | 'alarm' | 'unmeasured';
};

export type Trust = { readonly total: Agreement; readonly parts: readonly Agreement[] };

type Pair = { readonly group: string; readonly value: number; readonly target: number };

export function agreementOf(part: string | null, pairs: readonly Pair[], seed = 1): Agreement {
  const figure = (some: readonly Pair[]) =>
    spearman(
      some.map(({ value }) => value),
      some.map(({ target }) => target),
    );
  const found = pairs.length < fewestLabels ? null : figure(pairs);
  const interval =
    found === null
      ? null
      : bootstrap(
          groupsOf(pairs, ({ group }) => group),
          figure,
          { seed },
        );
  return {
    ...{ part, labels: pairs.length, spearman: found, low: interval?.low ?? null, high: interval?.high ?? null },
    state: found === null ? 'unmeasured' : found < trustBar ? 'alarm' : 'ok',
  };
}

/** A part is compared with what was said of that part; where nothing was, with what was said of the whole. */
export function trustOf(judged: readonly Judged[], names: readonly string[]): Trust {
  const total = judged.flatMap(({ group, total: value, target }) => (value === null ? [] : [{ group, value, target }]));
  const parts = names.map((name) =>
    agreementOf(
      name,
      judged.flatMap(({ group, parts: scored, target, partTargets }) => {
        const value = scored[name]?.value ?? null;
        return value === null ? [] : [{ group, value, target: partTargets[name] ?? target }];
      }),
    ),
  );
  return { total: agreementOf(null, total), parts };
}
