/**
 * Two contenders play the same suite with the same seeds, and are judged case by case. What plays, and how, is the contender's
 * business: a model at the engine, a release behind the gateway. An attempt that broke for reasons outside the model says
 * nothing about it; a case with no other attempt is not measured.
 */
import type { Answer } from './answer.ts';
import { type Comparison, compare, compareGraded, type Graded, holm } from './compare.ts';
import type { WrittenTokens } from './drift.ts';
import { type Gated, type GateSettings, gatedCases, gateSettings, gatesOf } from './gates/all.ts';
import type { Embedded } from './gates/diversity.ts';
import type { Gate, GatedCase } from './gates/gate.ts';
import type { PerturbedCase } from './gates/perturbed.ts';
import { type PassK, passK, type Solved } from './pass-k.ts';
import { type Report, reportId } from './report.ts';
import { entriesOf, type Suite } from './suite.ts';
import { judge, type VerdictSettings } from './verdict.ts';

export type Attempt = {
  /** null: it broke for reasons outside the model. */
  readonly solved: boolean | null;
  /** Why it is not solved. */
  readonly reasons: readonly string[];
  /** What was said and done; without it the gates have nothing to look at. */
  readonly answer?: Answer;
  /** What it wrote, token by token, where the server says so; of a case's first attempt only. */
  readonly tokens?: readonly WrittenTokens[];
};

export type Contender = {
  /** Name of the release; it goes into the report. */
  readonly name: string;
  /** [entry of the suite][attempt] */
  play(how: Playing): Promise<readonly (readonly Attempt[])[]>;
};

export type Playing = {
  readonly attempts: number;
  readonly seed: number;
  readonly signal?: AbortSignal;
  /** Attempts played so far; it may fall when all have to be played again. */
  readonly onProgress: (played: number) => void;
};

export type Match = {
  readonly agent: string;
  readonly suite: Suite<unknown>;
  readonly baseline: Contender;
  readonly candidate: Contender;
  readonly attempts: number;
  readonly seed: number;
  readonly temperature: number;
  readonly settings: MatchSettings;
  /** What else the gates are told. */
  readonly gated?: Pick<Gated, 'rubric'>;
  /** Measured after both have played; null where tokens are not known. */
  readonly drift?: () => Promise<number | null>;
  /** What the candidate's line began with, where that is neither of the two; measured likewise. */
  readonly base?: { readonly release: string; readonly drift: () => Promise<number | null> };
  /** What an embedding model makes of the answers; asked only where the gate on diversity is. */
  readonly embed?: (cases: readonly GatedCase[]) => Promise<Embedded>;
  /** What is played beside the suite, once that is done. */
  readonly beside?: (played: Report['tasks']) => Promise<Beside>;
  readonly signal?: AbortSignal;
  readonly onProgress?: (played: number, total: number) => void;
  readonly now?: () => number;
};

export type Beside = {
  /** Another suite, of what must not be forgotten. */
  readonly broad: NonNullable<Report['broad']> | null;
  /** Cases said differently; null: none were. */
  readonly perturbed: readonly PerturbedCase[] | null;
  /** Whether the candidate fits where it is to serve; null: nobody asked. */
  readonly compatibility: Gate | null;
};

export type MatchSettings = VerdictSettings & {
  /** Default: as the settings have it. */
  readonly gates?: GateSettings;
};

export async function playMatch(match: Match): Promise<Report> {
  const { suite, attempts, seed, settings, signal, onProgress, now = Date.now } = match;
  const began = now();
  const entries = entriesOf(suite);
  const half = entries.length * attempts;
  const playWith = (contender: Contender, before: number) =>
    contender.play({
      attempts,
      seed,
      ...(signal ? { signal } : {}),
      onProgress: (played) => onProgress?.(before + played, 2 * half),
    });
  const limits = settings.gates ?? gateSettings.parse({});
  const baseline = await playWith(match.baseline, 0);
  const candidate = await playWith(match.candidate, half);
  const drift = (await match.drift?.()) ?? null;
  const base =
    match.base === undefined || limits.driftFromBase === null
      ? null
      : { release: match.base.release, drift: await match.base.drift() };
  const tasks = entries.map(({ id, type }, i) => ({
    id,
    type,
    baseline: solvedShare(baseline[i]!),
    candidate: solvedShare(candidate[i]!),
    reasons: { baseline: reasonsOf(baseline[i]!), candidate: reasonsOf(candidate[i]!) },
  }));
  const { overall, types } = compareTasks(tasks, seed);
  const { broad = null, perturbed = null, compatibility = null } = (await match.beside?.(tasks)) ?? {};
  const embedded =
    limits.diversity === null ? null : ((await match.embed?.(gatedCases({ entries, baseline, candidate }))) ?? null);
  const gates = [
    ...(compatibility === null ? [] : [compatibility]),
    ...gatesOf({ entries, baseline, candidate, drift, base, perturbed, embedded, ...match.gated }, limits),
  ];
  const slices = { ...types, ...(broad === null ? {} : { [`the broad suite ${broad.suite}`]: broad.comparison }) };
  const { verdict, reasons } = judge({ tasks: tasks.length, overall, types: slices, gates }, settings);
  return {
    id: matchId(match),
    ...asked(match),
    overall,
    types,
    tasks,
    ...reliability(entries, baseline, candidate, attempts, seed),
    ...(broad === null ? {} : { broad }),
    drift,
    ...(base === null ? {} : { base }),
    gates,
    verdict,
    reasons: [...reasons, ...(verdict === 'unmeasured' ? commonestBreak([...baseline, ...candidate].flat()) : [])],
    seconds: (now() - began) / 1000,
    createdAt: began,
  };
}

const asked = ({ agent, suite, baseline, candidate, attempts, temperature, seed }: Match) => ({
  agent,
  baseline: baseline.name,
  candidate: candidate.name,
  suite: {
    ...{ name: suite.name, hash: suite.hash, tasks: entriesOf(suite).length },
    ...(suite.artifact === undefined ? {} : { artifact: suite.artifact }),
  },
  attempts,
  temperature,
  seed,
});

/** The id that the match's report will have. */
export const matchId = (match: Match): string => reportId(asked(match), match.settings);

/** How dependably cases are solved, where they were tried more than once, and what the graders paid. */
function reliability(
  entries: readonly unknown[],
  baseline: readonly (readonly Attempt[])[],
  candidate: readonly (readonly Attempt[])[],
  attempts: number,
  seed: number,
): { passK?: PassK[]; reward?: Graded } {
  const count = (of: readonly Attempt[]): Solved => ({
    solved: of.filter(({ solved }) => solved === true).length,
    attempts: of.filter(({ solved }) => solved !== null).length,
  });
  const k = passK(
    entries.map((_, i) => ({ baseline: count(baseline[i]!), candidate: count(candidate[i]!) })),
    attempts,
    seed,
  );
  const paid = (of: readonly Attempt[]) =>
    of.flatMap(({ solved, answer }) => (solved === null ? [] : (answer?.reward ?? [])));
  const reward = compareGraded(
    entries.map((_, i) => ({ baseline: paid(baseline[i]!), candidate: paid(candidate[i]!) })),
    seed,
  );
  return { ...(k.length === 0 ? {} : { passK: k }), ...(reward === null ? {} : { reward }) };
}

function solvedShare(attempts: readonly Attempt[]): number | null {
  const valid = attempts.filter(({ solved }) => solved !== null);
  return valid.length === 0 ? null : valid.filter(({ solved }) => solved).length / valid.length;
}

const reasonsKept = 3;
const reasonCharacters = 300;

const reasonsOf = (attempts: readonly Attempt[]): string[] =>
  [...new Set(attempts.flatMap(({ reasons }) => reasons))]
    .slice(0, reasonsKept)
    .map((reason) => reason.slice(0, reasonCharacters));

/** Attempts mostly break for one and the same reason. */
function commonestBreak(attempts: readonly Attempt[]): string[] {
  const counts = new Map<string, number>();
  for (const { solved, reasons } of attempts) {
    const why = reasons[0]?.slice(0, reasonCharacters);
    if (solved === null && why !== undefined) counts.set(why, (counts.get(why) ?? 0) + 1);
  }
  const [first] = [...counts].sort(([, a], [, b]) => b - a);
  return first === undefined ? [] : [`${first[1]} attempts broke, most often like this: ${first[0]}`];
}

/** Tasks that both played, in all and by type. */
export function compareTasks(
  tasks: Report['tasks'],
  seed: number,
): { overall: Comparison | null; types: Record<string, Comparison> } {
  const measured = tasks.flatMap(({ type, baseline, candidate }) =>
    baseline === null || candidate === null ? [] : [{ type, baseline, candidate }],
  );
  const types: Record<string, Comparison> = Object.create(null);
  for (const type of new Set(measured.map((pair) => pair.type))) {
    const of = compare(
      measured.filter((pair) => pair.type === type),
      seed,
    );
    if (of) types[type] = of;
  }
  const names = Object.keys(types);
  const adjusted = holm(names.map((name) => types[name]!.p));
  const withHolm = names.map((name, i): [string, Comparison] => [name, { ...types[name]!, holm: adjusted[i]! }]);
  return { overall: compare(measured, seed), types: Object.fromEntries(withHolm) };
}
