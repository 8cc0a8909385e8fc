/**
 * A reward spec: scorers with weights, and a version that is the hash of what it says. The total is the weighted mean of
 * the parts that were measured. A part that could not be measured is left out and the other weights share its place:
 * counting it as 0 would punish users' silence, counting it as 1 would reward it. How much of the weight the total rests
 * on is kept as `measured`. Where nothing was measured there is no score.
 */
import { createHash } from 'node:crypto';
import { evidenceOf, type PartScore, type Score, type TurnScore } from './score.ts';
import { inOrder, type Measured, type Scorer, type ScorerInput, unmeasured } from './scorer.ts';

export type WeightedPart = { readonly name: string; readonly weight: number; readonly scorer: Scorer };
export type RewardSpec = { readonly version: string; readonly parts: readonly WeightedPart[] };

/** What the spec says, in a form that can be kept. */
export const describeSpec = ({ parts }: Pick<RewardSpec, 'parts'>) =>
  parts.map(({ name, weight, scorer }) => ({ name, weight, scorer: scorer.name, version: scorer.version }));

export function weighted(parts: Readonly<Record<string, readonly [number, Scorer]>>): RewardSpec {
  // Sorted by name: the order in which they were written down changes neither the version nor a sum's last bit.
  const list = Object.entries(parts)
    .map(([name, [weight, scorer]]) => ({ name, weight, scorer }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  if (list.length === 0)
    throw new Error('A reward spec needs at least one part, such as { resolved: [1, outcome(…)] }.');
  for (const { name, weight } of list) {
    if (!/^[a-z][a-z0-9_-]{0,63}$/.test(name))
      throw new Error(`'${name}' cannot name a part: lower-case letters, digits, _ and - only, at most 64.`);
    if (!Number.isFinite(weight) || weight <= 0)
      throw new Error(`Part '${name}' has weight ${weight}; give a number above 0, or leave the part out.`);
  }
  const version = createHash('sha256')
    .update(JSON.stringify(describeSpec({ parts: list })))
    .digest('hex')
    .slice(0, 16);
  return { version, parts: list };
}

const isUnit = (value: number): boolean => value >= 0 && value <= 1;
/** Nine digits: 0.1 + 0.6 must reach a threshold of 0.7. */
const round = (value: number): number => Math.min(1, Math.max(0, Math.round(value * 1e9) / 1e9));

/** `failed`: nothing was measured because the scorer broke, not because there was nothing to see. */
type Result = Measured & { readonly failed?: true };
const failed = (reason: string): Result => ({ ...unmeasured(reason.slice(0, 500)), failed: true });

/** A scorer that throws, answers nonsense or never ends has measured nothing; the reason is kept in the row. */
async function measure({ name, scorer }: WeightedPart, input: ScorerInput): Promise<Result> {
  const { timeoutSeconds = 60 } = scorer;
  const stop = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Result>((resolve) => {
    timer = setTimeout(() => {
      const reason = `scorer ${name} did not answer within ${timeoutSeconds} s`;
      resolve(failed(reason));
      stop.abort(new Error(reason));
    }, timeoutSeconds * 1000);
  });
  try {
    const measured = await Promise.race([scorer.score(input, { signal: stop.signal }), late]);
    const values = [...(measured.value === null ? [] : [measured.value]), ...measured.turns.values()];
    const odd = values.find((value) => !isUnit(value));
    return odd === undefined ? measured : failed(`scorer ${name} gave ${odd}, which is not in 0–1`);
  } catch (error) {
    return failed(`scorer ${name} failed: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    clearTimeout(timer);
  }
}

/** Weighted mean over the entries that have a value. */
function weigh(entries: readonly { readonly value: number | null; readonly weight: number }[]) {
  const known = entries.filter(({ value }) => value !== null);
  const weight = known.reduce((sum, entry) => sum + entry.weight, 0);
  const sum = known.reduce((total, entry) => total + entry.weight * entry.value!, 0);
  const whole = entries.reduce((total, entry) => total + entry.weight, 0);
  return { value: known.length === 0 ? null : round(sum / weight), measured: round(weight / whole) };
}

/** The parts are measured at the same time. A score in which a scorer broke names no evidence whole: it is computed again. */
export async function scoreOf(
  spec: RewardSpec,
  input: ScorerInput,
  about: { readonly day: string; readonly at: number },
): Promise<Score> {
  const results = await Promise.all(spec.parts.map((part) => measure(part, input)));
  const measured = spec.parts.map((part, i) => ({ ...part, result: results[i]! }));
  const parts: Record<string, PartScore> = {};
  for (const { name, weight, result } of measured)
    parts[name] = { value: result.value === null ? null : round(result.value), weight, reason: result.reason };
  const turns = inOrder(input.turns).map(({ id }): TurnScore => {
    const known = measured.flatMap(({ name, weight, result }) => {
      const value = result.turns.get(id);
      return value === undefined ? [] : [{ name, weight, value: round(value) }];
    });
    return {
      turn: id,
      value: weigh(known).value,
      parts: Object.fromEntries(known.map(({ name, value }) => [name, value])),
    };
  });
  const total = weigh(measured.map(({ weight, result }) => ({ weight, value: result.value })));
  return {
    agent: input.trajectory.agent,
    trajectory: input.trajectory.id,
    day: about.day,
    spec: spec.version,
    evidence: evidenceOf(
      input.turns.map(({ id }) => id),
      input.signals.map(({ id }) => id),
      results.some((result) => result.failed),
    ),
    total: total.value,
    measured: total.measured,
    parts,
    turns,
    at: about.at,
  };
}
