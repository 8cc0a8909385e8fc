/**
 * A reward spec: scorers with weights, and a version that is the hash of what it says. Weights are shares of their sum. A part
 * adds its share times its value; a penalty takes its share away as far as its value is below 1:
 *
 *     total = G · Σ w·v / Σ w over the measured parts  −  Σ w·(1 − v) over the measured penalties,   clamped to 0–1
 *
 * where w are shares and G is that of all parts that are no penalty. With everything measured this is Σ w·v − Σ w·(1 − v).
 * A part that could not be measured is left out and the other parts share its place: counting it as 0 would punish users'
 * silence, counting it as 1 would reward it. Where no part was measured there is no score; nor where a scorer failed, since
 * a total without it would be another reward.
 */
import { createHash } from 'node:crypto';
import { evidenceOf, type PartScore, type Score, type TurnScore } from './score.ts';
import {
  inOrder,
  type Measured,
  type Scorer,
  type ScorerContext,
  type ScorerInput,
  type Services,
  unmeasured,
} from './scorer.ts';

export type WeightedPart = {
  readonly name: string;
  readonly weight: number;
  readonly scorer: Scorer;
  readonly penalty?: true;
};
export type RewardSpec = { readonly version: string; readonly parts: readonly WeightedPart[] };

export const usesLabels = ({ parts }: RewardSpec): boolean =>
  parts.some(({ scorer }) => scorer.usesLabels !== undefined);

/** It may say what labels say, and is nothing that can be checked against them. */
export const repeatsLabels = ({ scorer }: WeightedPart): boolean => scorer.usesLabels === true;

/** What the spec says, in a form that can be kept. */
export const describeSpec = ({ parts }: Pick<RewardSpec, 'parts'>) =>
  parts.map(({ name, weight, scorer, penalty }) => ({
    name,
    weight,
    scorer: scorer.name,
    version: scorer.version,
    ...(penalty && { penalty }),
  }));

export type PartInput = readonly [weight: number, scorer: Scorer] | readonly [number, Scorer, 'penalty'];

/** A part that can only cost: nothing at full marks, its whole weight at none. */
export const penalty = (weight: number, scorer: Scorer): PartInput => [weight, scorer, 'penalty'];

export function weighted(parts: Readonly<Record<string, PartInput>>): RewardSpec {
  // Sorted by name: the order in which they were written down changes neither the version nor a sum's last bit.
  const list = Object.entries(parts)
    .map(([name, [weight, scorer, kind]]): WeightedPart => ({ name, weight, scorer, ...(kind && { penalty: true }) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  if (list.every(({ penalty }) => penalty))
    throw new Error('A reward spec needs at least one part that is no penalty, such as { resolved: [1, outcome(…)] }.');
  for (const { name, weight } of list) {
    if (!/^[a-z][a-z0-9_-]{0,63}$/.test(name))
      throw new Error(`'${name}' cannot name a part: lower-case letters, digits, _ and - only, at most 64.`);
    if (!Number.isFinite(weight) || weight <= 0)
      throw new Error(`Part '${name}' has weight ${weight}; give a number above 0, or leave the part out.`);
  }
  return specOf(list);
}

const specOf = (parts: readonly WeightedPart[]): RewardSpec => ({
  version: createHash('sha256')
    .update(JSON.stringify(describeSpec({ parts })))
    .digest('hex')
    .slice(0, 16),
  parts,
});

/** With the files read that its scorers name; what is in them is part of the version. */
export const rewardFrom = (spec: RewardSpec, folder: string): RewardSpec =>
  spec.parts.every(({ scorer }) => scorer.from === undefined)
    ? spec
    : specOf(spec.parts.map((part) => ({ ...part, scorer: part.scorer.from?.(folder) ?? part.scorer })));

const isUnit = (value: number): boolean => value >= 0 && value <= 1;
/** Nine digits: 0.1 + 0.6 must reach a threshold of 0.7. */
const round = (value: number): number => Math.min(1, Math.max(0, Math.round(value * 1e9) / 1e9));

/** `failed`: nothing was measured because the scorer broke, not because there was nothing to see. */
type Result = Measured & { readonly failed?: true };
const failed = (reason: string): Result => ({ ...unmeasured(reason.slice(0, 500)), failed: true });

/** What a scorer said, if it is one that can be kept. */
function checked(name: string, { value, reason, turns }: Measured): Result {
  const odd = [...(value === null ? [] : [value]), ...turns.values()].find((one) => !isUnit(one));
  if (odd !== undefined) return failed(`scorer ${name} gave ${odd}, which is not in 0–1`);
  return { value, reason: String(reason), turns };
}

const failure = (name: string, error: unknown): Result =>
  failed(`scorer ${name} failed: ${error instanceof Error ? error.message : String(error)}`);

/** What most scorers never ask for is only made for those that do. */
export function contextOf(
  { trajectory, turns }: ScorerInput,
  { judge, rewardModels }: Services,
  signal: () => AbortSignal,
): ScorerContext {
  const { agent, id, startedAt } = trajectory;
  return {
    get signal() {
      return signal();
    },
    get ask() {
      const day = startedAt.toISOString().slice(0, 10);
      const releases = [...new Set(turns.map(({ release }) => release))];
      return judge?.about({ agent, trajectory: id, day, releases, signal: signal() });
    },
    rewardModels,
  };
}

/** A scorer that throws, answers nonsense or never ends has failed; the reason is kept in the row. */
function measure({ name, scorer }: WeightedPart, input: ScorerInput, services: Services): Result | Promise<Result> {
  let made: AbortController | undefined;
  const stop = (): AbortController => {
    made ??= new AbortController();
    return made;
  };
  try {
    const answer = scorer.score(
      input,
      contextOf(input, services, () => stop().signal),
    );
    // Most scorers compute; only one that is waited for needs a clock.
    return answer instanceof Promise ? inTime(name, scorer, answer, stop()) : checked(name, answer);
  } catch (error) {
    return failure(name, error);
  }
}

async function inTime(name: string, scorer: Scorer, answer: Promise<Measured>, stop: AbortController): Promise<Result> {
  const { timeoutSeconds = 60 } = scorer;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Result>((resolve) => {
    timer = setTimeout(() => {
      const reason = `scorer ${name} did not answer within ${timeoutSeconds} s`;
      resolve(failed(reason));
      stop.abort(new Error(reason));
    }, timeoutSeconds * 1000);
  });
  try {
    const said = await Promise.race([answer, late]);
    return 'failed' in said ? said : checked(name, said);
  } catch (error) {
    return failure(name, error);
  } finally {
    clearTimeout(timer);
  }
}

type Weighed = { readonly value: number | null; readonly weight: number; readonly penalty?: true | undefined };

/** The formula above. `measured`: share of the weights that spoke. */
export function weigh(entries: readonly Weighed[]): { readonly value: number | null; readonly measured: number } {
  const [parts, penalties] = [entries.filter(({ penalty }) => !penalty), entries.filter(({ penalty }) => penalty)];
  const isKnown = ({ value }: Weighed): boolean => value !== null;
  const weightOf = (some: readonly Weighed[]): number => some.reduce((sum, { weight }) => sum + weight, 0);
  const known = parts.filter(isKnown);
  if (known.length === 0) return { value: null, measured: 0 };
  const whole = weightOf(entries);
  const mean = known.reduce((sum, { weight, value }) => sum + weight * value!, 0) / weightOf(known);
  const lost = penalties.filter(isKnown).reduce((sum, { weight, value }) => sum + weight * (1 - value!), 0);
  return {
    value: round(penalties.length === 0 ? mean : (weightOf(parts) * mean - lost) / whole),
    measured: round(weightOf(entries.filter(isKnown)) / whole),
  };
}

/** The parts are measured at the same time. A score in which a scorer failed names no evidence whole: it is computed again. */
export async function scoreOf(
  spec: RewardSpec,
  input: ScorerInput,
  about: { readonly day: string; readonly at: number },
  services: Services = {},
): Promise<Score> {
  const results = await Promise.all(spec.parts.map((part) => measure(part, input, services)));
  const measured = spec.parts.map((part, i) => ({ ...part, result: results[i]! }));
  const broken = results.some((result) => result.failed);
  const parts: Record<string, PartScore> = {};
  for (const { name, weight, penalty, result } of measured)
    parts[name] = {
      value: result.value === null ? null : round(result.value),
      weight,
      reason: result.reason,
      ...(penalty && { penalty }),
      ...(result.failed && { failed: true }),
    };
  const turns = inOrder(input.turns).map(({ id }): TurnScore => {
    const known = measured.flatMap(({ name, weight, penalty, result }) => {
      const value = result.turns.get(id);
      return value === undefined ? [] : [{ name, weight, penalty, value: round(value) }];
    });
    return {
      turn: id,
      value: broken ? null : weigh(known).value,
      parts: Object.fromEntries(known.map(({ name, value }) => [name, value])),
    };
  });
  const total = weigh(measured.map(({ weight, penalty, result }) => ({ weight, penalty, value: result.value })));
  return {
    agent: input.trajectory.agent,
    trajectory: input.trajectory.id,
    day: about.day,
    spec: spec.version,
    evidence: evidenceOf({
      turnIds: input.turns.map(({ id }) => id),
      signalIds: input.signals.map(({ id }) => id),
      norms: input.norms,
      broken,
    }),
    total: broken ? null : total.value,
    measured: total.measured,
    parts,
    turns,
    at: about.at,
  };
}
