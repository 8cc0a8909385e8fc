/**
 * Group-relative policy optimisation (Shao et al. 2024, arXiv 2402.03300) as it is done today. Each step plays groups of
 * attempts with the current weights, compares each attempt with its group, and makes what did better more likely.
 *
 * Attempts are sampled from a snapshot of the weights, taken as the step begins: the policy that wrote them is named and fixed,
 * whatever engine trains and wherever it samples.
 *
 * What differs from the paper, each for a reason given in docs/algorithms/grpo.md:
 * - advantages are centred, not divided by the deviation; every token is divided by a constant, not by its attempt's
 *   length (Dr. GRPO): no bias towards easy tasks or long failures;
 * - groups whose attempts all earned the same are skipped and counted (DAPO);
 * - the upper clip is wider than the lower (DAPO); importance weights are truncated;
 * - KL to the reference (0.05) and the entropy bonus are parts of each token's advantage (kl.ts, entropy.ts);
 * - one optimizer step per batch unless `updates` says otherwise; attempts older than that are refused;
 * - with `lag` 1 the next batch is played while this one is learned, with the weights before it: the truncated importance weights make that
 *   right, and the attempts that wait are part of a checkpoint, so that a resumed run is on the same curve.
 * What is left out: a value network, resampling until a batch is full, length shaping.
 */
import type { AdamParams, Datum, Engine } from '../engine/engine.ts';
import { type Credit, groupAdvantages, isFlat } from './advantage.ts';
import { type Attempt, type AttemptSource, beginFrozen, type Group, ownTokens } from './attempt.ts';
import { type ClipBounds, clipBounds, clippedSurrogate, truncatedWeight } from './clip.ts';
import { ownCount, refuseStale, type Sequence, sequences } from './datum.ts';
import { entropyBonus } from './entropy.ts';
import { type KlSetting, klDefault, klEstimate, klPenalty } from './kl.ts';
import type { StageMetrics } from './metrics.ts';
import { draw, mixSeed } from './order.ts';
import { reload } from './reload.ts';
import { type Replay, replayed } from './replay.ts';
import { learningRate, type Schedule } from './schedule.ts';
import { supervisedData } from './sft.ts';
import type { Stage } from './stage.ts';

export type GrpoSettings = {
  readonly steps: number;
  readonly tasksPerStep: number;
  /** Attempts per task. */
  readonly attempts: number;
  /** Optimizer steps per batch of attempts: 1 is on policy; n lets the last be n − 1 steps old. */
  readonly updates: number;
  /** Batches that attempts may be behind: 0 plays, then learns; 1 plays the next batch meanwhile. */
  readonly lag: number;
  readonly credit: Credit;
  readonly clip: ClipBounds;
  /** C of the truncated importance weights. */
  readonly truncate: number;
  readonly kl: KlSetting;
  readonly entropy: number;
  /** The constant each attempt's tokens are divided by, instead of their own count. */
  readonly lengthNormaliser: number;
  readonly schedule: Schedule;
  readonly adam: Omit<AdamParams, 'learningRate'>;
  readonly replay?: Replay;
  /** Expected tokens of one attempt, for the estimate only. */
  readonly tokensPerAttempt: number;
};

/** Rates are for small models trained in full, as the embedded engine does; large ones with LoRA want 1e-5 … 4e-5. */
export const grpoDefaults: GrpoSettings = {
  steps: 90,
  tasksPerStep: 20,
  attempts: 8,
  updates: 1,
  lag: 0,
  credit: { kind: 'attempt' },
  clip: clipBounds(),
  truncate: 2,
  kl: klDefault,
  entropy: 0.01,
  lengthNormaliser: 32,
  schedule: { peak: 4e-4, shape: 'linear', warmup: 0.05, floor: 0.2 },
  adam: { beta1: 0.9, beta2: 0.95, gradClipNorm: 1 },
  tokensPerAttempt: 200,
};

/** One sequence with all that its loss needs. Per-token arrays are as long as the sequence; 0 off the own tokens. */
export type PolicyRow = {
  readonly sequence: Sequence;
  /** Advantage of each target before KL and entropy. */
  readonly advantages: Float32Array;
};

/** The informative part of a batch, the number of groups, and how many of them were flat. */
export function policyRows(groups: readonly Group[], credit: Credit): { rows: PolicyRow[]; flat: number } {
  const rows: PolicyRow[] = [];
  let flat = 0;
  for (const group of groups) {
    const advantages = groupAdvantages(group, credit);
    if (isFlat(advantages)) {
      flat++;
      continue;
    }
    for (const [i, attempt] of group.entries())
      for (const sequence of sequences(attempt.turns)) {
        const perToken = new Float32Array(sequence.turns.length);
        for (let t = 0; t < perToken.length; t++)
          if (sequence.turns[t]! >= 0) perToken[t] = advantages[i]![sequence.turns[t]!]!;
        rows.push({ sequence, advantages: perToken });
      }
  }
  return { rows, flat };
}

export type PolicyUpdate = {
  readonly loss: number;
  /** Own tokens, and how many of them the clip cut off. */
  readonly own: number;
  readonly clipped: number;
  /** Sums over own tokens. */
  readonly entropySum: number;
  readonly gapSum: number;
  readonly klSum: number;
};

/**
 * Adds the policy gradient of `rows` to the model: loss = Σ tokens / normaliser. `references` are the reference's logprobs per
 * row; `old` are the trainer's own at the time of sampling. The engine is asked before anything is awaited, so that what the caller
 * asks next comes after it.
 */
export async function policyGradient(
  engine: Engine,
  model: string,
  rows: readonly PolicyRow[],
  options: {
    readonly settings: Pick<GrpoSettings, 'clip' | 'truncate' | 'kl' | 'entropy'>;
    readonly normaliser: number;
    readonly references?: readonly Float32Array[];
    readonly old: readonly Float32Array[];
  },
): Promise<PolicyUpdate> {
  const { settings, normaliser, references, old } = options;
  const { kl } = settings;
  const at = ownPositions(rows);
  const pick = (arrays: readonly ArrayLike<number>[]) => {
    const out = new Float64Array(at.row.length);
    for (let i = 0; i < out.length; i++) out[i] = arrays[at.row[i]!]![at.token[i]!]!;
    return out;
  };
  const sampled = pick(rows.map((r) => r.sequence.logprobs));
  const before = pick(old);
  const reference = references ? pick(references) : undefined;

  // Everything that shapes the advantage, one number per own token.
  const advantages = pick(rows.map((r) => r.advantages));
  const penalty = reference && klPenalty(before, reference, kl.coefficient);
  const bonus = settings.entropy !== 0 ? entropyBonus(before, settings.entropy) : undefined;
  const shaped = advantages.map((a, i) => a + (penalty?.[i] ?? 0) + (bonus?.[i] ?? 0));
  const weights = before.map((lp, i) => truncatedWeight(lp, sampled[i]!, settings.truncate));

  const scaled = rows.map((r) => new Float32Array(r.sequence.tokens.length));
  for (let i = 0; i < shaped.length; i++) scaled[at.row[i]!]![at.token[i]!] = (shaped[i]! * weights[i]!) / normaliser;
  const result = await engine.forwardBackward(
    model,
    rows.map((r, i): Datum => ({ ...plain(r.sequence), logprobs: old[i]!, advantages: scaled[i]! })),
    { kind: 'ppo', clipLow: settings.clip.low, clipHigh: settings.clip.high },
  );

  let loss = 0;
  let clipped = 0;
  let entropySum = 0;
  let gapSum = 0;
  let klSum = 0;
  const learned = pick(result.logprobs);
  const entropies = result.entropies && pick(result.entropies);
  for (let i = 0; i < learned.length; i++) {
    const lp = learned[i]!;
    const token = clippedSurrogate(lp, before[i]!, shaped[i]!, settings.clip);
    loss += token.loss * weights[i]!;
    if (token.clipped) clipped++;
    if (reference) klSum += klEstimate(lp, reference[i]!);
    entropySum += entropies ? entropies[i]! : -lp;
    gapSum += Math.abs(before[i]! - sampled[i]!);
  }
  return { loss: loss / normaliser, own: learned.length, clipped, entropySum, gapSum, klSum };
}

export function grpo(source: AttemptSource, settings: Partial<GrpoSettings> = {}): Stage {
  const set = { ...grpoDefaults, ...settings };
  if (set.attempts < 2)
    throw new Error(`${set.attempts} attempt per task gives no advantage, for there is no peer; use 2 or more.`);
  const perStep = Math.min(set.tasksPerStep, source.tasks);
  const played = set.steps * perStep * set.attempts * set.tokensPerAttempt;
  return {
    name: 'grpo',
    algorithm: 'grpo',
    steps: set.steps,
    work: { sampled: played, forwarded: played * (set.kl.coefficient > 0 ? 2 : 1), trained: played },
    async begin({ engine, model, start, seed, clock, onPlayed }, state) {
      const reference = `${model}.reference`;
      const useReference = set.kl.coefficient > 0;
      if (useReference) await reload(engine, reference, start);
      let waiting = (state as Waiting | undefined) ?? null;
      const play = (index: number, signal?: AbortSignal) =>
        beginFrozen(source, {
          engine,
          model,
          tasks: draw(source.tasks, index * perStep, perStep, seed),
          attempts: set.attempts,
          seed: mixSeed(seed, 2, index),
          ...(signal ? { signal } : {}),
          ...(clock ? { clock } : {}),
          ...(onPlayed ? { onPlayed } : {}),
        });
      return {
        async step(index, signal) {
          const groups = waiting?.step === index ? waiting.groups : await (await play(index, signal)).groups;
          const isAhead = set.lag > 0 && index + 1 < set.steps;
          const ahead = isAhead ? await play(index + 1, signal) : null;
          const rate = learningRate(set.schedule, index, set.steps);
          // Whatever becomes of one, the other is waited for: it must not meet the step after.
          const [learned, played] = await Promise.allSettled([learn(groups, index, rate), ahead?.groups]);
          if (learned.status === 'rejected') throw learned.reason;
          if (played.status === 'rejected') throw played.reason;
          const trained = learned.value;
          waiting = played.value ? { step: index + 1, groups: played.value } : null;
          const { values, taskTypes } = attemptMetrics(groups);
          return {
            values: { ...values, ...trained, tokens: values.tokens + trained.tokens, learning_rate: rate },
            taskTypes,
          };
        },
        state: () => (waiting === null ? undefined : { ...waiting, groups: waiting.groups.map((g) => g.map(asJson)) }),
        end: async () => {
          if (useReference) await engine.unload(reference);
        },
      };

      async function learn(groups: readonly Group[], index: number, rate: number) {
        const attempts = groups.flat();
        const version = (await engine.models()).find((m) => m.name === model)?.version;
        if (version === undefined)
          throw new Error(`The engine holds no model named ${model}; load it before training.`);
        refuseStale(attempts, version, (set.lag + 1) * set.updates - 1);
        const isFresh = attempts.every((a) => a.version === version);
        const parts = split(groups, set.updates).map((part) => ({ ...policyRows(part, set.credit), part }));
        const rows = parts.flatMap((p) => p.rows);
        const flat = parts.reduce((n, p) => n + p.flat, 0);
        const zero_variance_fraction = flat / Math.max(1, groups.length);
        if (rows.length === 0) return { zero_variance_fraction, loss: 0, grad_norm: 0, tokens: 0 };

        const forward = async (name: string) =>
          (
            await engine.forward(
              name,
              rows.map((r) => plain(r.sequence)),
            )
          ).logprobs;
        const references = useReference ? await forward(reference) : undefined;
        // The trainer's own logprobs, also on policy: what a sampler reports depends, in its last bits, on what else was in its
        // batch, and a run must not.
        const old = await forward(model);
        const total = { loss: 0, own: 0, clipped: 0, entropySum: 0, gapSum: 0, klSum: 0 };
        let gradNorm: number | null = 0;
        let updates = 0;
        let from = 0;
        let tokens = rows.reduce((n, r) => n + r.sequence.tokens.length, 0);
        for (const [u, part] of parts.entries()) {
          const to = from + part.rows.length;
          const planned = part.part.reduce((n, g) => n + g.length, 0);
          const normaliser = planned * set.lengthNormaliser;
          if (part.rows.length > 0) {
            // All of a step is sent together; an engine carries it out in order.
            const updating = policyGradient(engine, model, part.rows, {
              settings: set,
              normaliser,
              ...(references ? { references: references.slice(from, to) } : {}),
              old: old.slice(from, to),
            });
            const sent: Promise<unknown>[] = [updating];
            const again = supervisedData(replayed(set.replay, planned, index * set.updates + u, mixSeed(seed, 1)));
            if (again.data.length > 0) {
              // A replayed token weighs what a policy token of advantage 1 weighs.
              const scale = again.own / normaliser;
              const data = again.data.map((d) => ({ ...d, weights: Float32Array.from(d.weights!, (w) => w * scale) }));
              sent.push(engine.forwardBackward(model, data, { kind: 'cross_entropy' }));
              tokens += data.reduce((n, d) => n + d.tokens.length, 0);
            }
            const stepping = engine.optimStep(model, { ...set.adam, learningRate: rate });
            await Promise.all([...sent, stepping]);
            const update = await updating;
            const { gradNorm: norm } = await stepping;
            gradNorm = gradNorm === null || norm === null ? null : gradNorm + norm;
            updates++;
            for (const key of Object.keys(total) as (keyof typeof total)[]) total[key] += update[key];
          }
          from = to;
        }
        return {
          zero_variance_fraction,
          loss: total.loss / updates,
          ...(gradNorm === null ? {} : { grad_norm: gradNorm / updates }),
          clip_fraction: total.clipped / total.own,
          entropy: total.entropySum / total.own,
          [isFresh ? 'sampler_gap' : 'lag_gap']: total.gapSum / total.own,
          ...(useReference ? { kl: total.klSum / total.own } : {}),
          tokens,
        };
      }
    },
  };
}

/** Attempts that were played ahead, and the step that learns from them. */
type Waiting = { readonly step: number; readonly groups: readonly Group[] };

const asJson = (attempt: Attempt): Attempt => ({
  ...attempt,
  turns: attempt.turns.map((turn) => ({
    ...turn,
    prompt: Array.from(turn.prompt),
    completion: Array.from(turn.completion),
    logprobs: Array.from(turn.logprobs),
  })),
});

/** What a batch of attempts says about the policy, before anything is learned from it. */
export function attemptMetrics(groups: readonly Group[]) {
  const attempts = groups.flat();
  const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / Math.max(1, values.length);
  const deviation = (values: readonly number[]) => {
    const m = mean(values);
    return Math.sqrt(mean(values.map((v) => (v - m) ** 2)));
  };
  const types = new Map<string, Attempt[]>();
  for (const a of attempts) types.set(a.taskType, [...(types.get(a.taskType) ?? []), a]);
  return {
    values: {
      reward_mean: mean(attempts.map((a) => a.reward)),
      reward_std: mean(groups.map((g) => deviation(g.map((a) => a.reward)))),
      success: mean(attempts.map((a) => (a.success ? 1 : 0))),
      length: mean(attempts.map(ownTokens)),
      tokens: attempts.reduce((n, a) => n + ownTokens(a), 0),
    },
    taskTypes: Object.fromEntries(
      [...types].map(([type, list]) => [
        type,
        {
          reward: mean(list.map((a) => a.reward)),
          success: mean(list.map((a) => (a.success ? 1 : 0))),
          attempts: list.length,
        },
      ]),
    ),
  } satisfies StageMetrics;
}

function plain({ tokens, targets }: Sequence): Datum {
  return { tokens, targets };
}

/** Row and place of every token the model wrote. */
function ownPositions(rows: readonly PolicyRow[]): { readonly row: Int32Array; readonly token: Int32Array } {
  const own = rows.reduce((sum, { sequence }) => sum + ownCount(sequence), 0);
  const [row, token] = [new Int32Array(own), new Int32Array(own)];
  let i = 0;
  for (const [r, { sequence }] of rows.entries())
    for (let t = 0; t < sequence.turns.length; t++)
      if (sequence.turns[t]! >= 0) {
        row[i] = r;
        token[i++] = t;
      }
  return { row, token };
}

/** Groups dealt into n parts as evenly as possible, in order. */
function split(groups: readonly Group[], n: number): Group[][] {
  const size = Math.ceil(groups.length / n);
  return Array.from({ length: n }, (_, i) => groups.slice(i * size, (i + 1) * size)).filter((p) => p.length > 0);
}
