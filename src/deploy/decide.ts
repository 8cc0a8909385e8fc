/**
 * Whether a rollout goes on. Pure: the rollout, what the checks (checks/) found, and the time, in; one decision with its
 * reasons out. A check ends in pass, fail, inconclusive or unmeasured; a failing one is always the result of a test that may
 * be looked at as often as one likes (evidence.ts).
 *
 * Precedence, the first that holds decides (from shadow, only advance to the first step is left of 6 to 10):
 *   1  rollback  any check fails, at any time, in shadow, canary or paused
 *   2  hold      paused: a person decides
 *   3  hold      the step is younger than holdSeconds
 *   4  pause     a needed check is unmeasured or inconclusive, and patienceSeconds are over
 *   5  hold      a needed check is unmeasured or inconclusive: no data is never a failure and never a pass
 *   6  look      the promotion's question is due (promotion.ts): what is found is kept
 *   7  pause     everybody would get it next, all looks are taken, and it is not shown; or there is too little traffic to ask
 *   8  hold      everybody would get it next, and there are not users enough yet to ask
 *   9  promote   all needed checks pass at the last step
 *  10  advance   all needed checks pass
 */
import type { Finding } from './checks/check.ts';
import type { Look, Standing } from './promotion.ts';
import type { Rollout } from './rollout.ts';

export const decisions = ['hold', 'advance', 'promote', 'rollback', 'pause', 'look'] as const;

export type Decision = {
  readonly kind: (typeof decisions)[number];
  readonly reasons: readonly string[];
  readonly checks: readonly Finding[];
  /** Of a look. */
  readonly look: Look | null;
};

/** What the checks found, and how the promotion's question stands. */
export type Found = { readonly checks: readonly Finding[]; readonly promotion: Standing };

export function decide(rollout: Rollout, { checks, promotion }: Found, now: number): Decision {
  const { phase, step, settings, stepSince } = rollout;
  const decision = (kind: Decision['kind'], reasons: readonly string[], look: Look | null = null): Decision => ({
    ...{ kind, reasons, checks, look },
  });

  switch (phase) {
    case 'waiting':
      return decision('hold', ['Waits for approval.']);
    case 'promoted':
    case 'rolled-back':
      return decision('hold', [`Ended: ${phase}.`]);
    case 'shadow':
    case 'canary':
    case 'paused': {
      const failed = checks.filter(({ end }) => end === 'fail').map(({ reason }) => reason);
      if (failed.length > 0) return decision('rollback', failed);
      if (phase === 'paused') return decision('hold', ['Paused: a person decides.']);
      const age = (now - (stepSince ?? now)) / 1000;
      const hold = phase === 'shadow' ? settings.shadow.holdSeconds : settings.holdSeconds;
      const share = phase === 'shadow' ? 'shadow' : `${Number((settings.steps[step]! * 100).toFixed(1))}%`;
      if (age < hold)
        return decision('hold', [
          `${phase === 'shadow' ? 'In' : 'At'} ${share} for ${seconds(age)} of at least ${seconds(hold)}; nothing is wrong.`,
        ]);
      const open = checks
        .filter(({ needed, end }) => needed && (end === 'unmeasured' || end === 'inconclusive'))
        .map(({ reason }) => reason);
      const noAnswer = `${seconds(age)} ${phase === 'shadow' ? 'in' : 'at'} ${share} gave no answer: a person decides.`;
      if (open.length > 0 && age >= settings.patienceSeconds) return decision('pause', [...open, noAnswer]);
      if (open.length > 0) return decision('hold', open);
      if (phase === 'shadow') return decision('advance', grounds(checks));
      if (promotion.kind === 'due') return decision('look', [promotion.reason], promotion.look);
      if (settings.steps[step + 1] === 1 && promotion.kind === 'not shown')
        return decision('pause', [promotion.reason, 'A person decides.']);
      if (settings.steps[step + 1] === 1 && promotion.kind === 'early')
        return age >= settings.patienceSeconds
          ? decision('pause', [promotion.reason, noAnswer])
          : decision('hold', [promotion.reason]);
      const shown = promotion.kind === 'shown' ? [promotion.reason] : [];
      return decision(step === settings.steps.length - 1 ? 'promote' : 'advance', [...shown, ...grounds(checks)]);
    }
    default:
      return phase satisfies never;
  }
}

/** Why a step counts as passed: what was found good, the many slices in a word, and what cannot be told. */
function grounds(checks: readonly Finding[]): string[] {
  const passed = checks.filter(({ end }) => end === 'pass');
  const good = [...new Set(passed.map(({ name }) => name))].flatMap((name) => {
    const same = passed.filter((one) => one.name === name);
    return name === 'slice' && same.length > 1
      ? [`None of the ${same.length} slices measured is worse.`]
      : same.map(({ reason }) => reason);
  });
  return [...good, ...checks.filter(({ end }) => end === 'unmeasured').map(({ reason }) => reason)];
}

const seconds = (s: number): string =>
  s < 120 ? `${Math.round(s)} s` : s < 7200 ? `${Math.round(s / 60)} min` : `${Math.round(s / 3600)} h`;
