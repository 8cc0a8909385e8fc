/**
 * Scores of single answers, where a turn was answered more than once (collect/sibling.ts): each answer alone, in place of the
 * turn's, so that they can be compared with each other. They are kept beside the scores of conversations under a name that no
 * conversation can have, and are part of no mean. A scorer that can compare is asked for all answers of a turn together.
 */
import type { Sibling } from '../collect/sibling.ts';
import type { Turn } from '../collect/turn.ts';
import type { Store } from '../store/postgres.ts';
import { answerName, readScoresOf, saveScores } from '../store/scores.ts';
import { readSiblings } from '../store/siblings.ts';
import {
  batchesOf,
  type Placed,
  placedKey,
  readSignalsOf,
  readSizes,
  readTurnsOf,
  withCorrections,
} from '../store/window.ts';
import { evidenceOf, type Score } from './score.ts';
import type { Measured, ScorerInput, Services } from './scorer.ts';
import { contextOf, type RewardSpec, scoreOf, usesLabels } from './weighted.ts';

/** An answer as if it were a conversation of one turn. */
const placedAnswer = ({ trajectory, day }: Placed, id: string): Placed => ({
  day,
  trajectory: { ...trajectory, id: answerName(id), turns: 1 },
});

/** The turn, answered by a sibling. */
export const answeredBy = (turn: Turn, { id, choices, release, model }: Sibling): Turn => {
  const { promptTokenIds: _, ...rest } = turn;
  return { ...rest, id, choices, release, model, status: 'ok' };
};

type Explored = {
  readonly of: Placed;
  readonly turn: string;
  readonly sibling: Sibling | null;
  readonly placed: Placed;
};

/** The spec for each answer: what compares has compared them all, and says of each what came of it. */
async function rankedSpecs(
  spec: RewardSpec,
  inputs: readonly ScorerInput[],
  services: Services,
): Promise<readonly RewardSpec[]> {
  const ranks = new Map<string, (i: number) => Measured>();
  for (const { name, scorer } of spec.parts) {
    if (scorer.rank === undefined) continue;
    const signal = AbortSignal.timeout((scorer.timeoutSeconds ?? 60) * 1000);
    const ranked = scorer.rank(
      inputs,
      // It is shown all of the answers.
      contextOf({ ...inputs[0]!, turns: inputs.flatMap(({ turns }) => turns) }, services, () => signal),
    );
    const measured = await ranked.catch((error: unknown) => error as Error);
    ranks.set(name, (i) => {
      if (measured instanceof Error) throw measured;
      return measured[i]!;
    });
  }
  if (ranks.size === 0) return inputs.map(() => spec);
  return inputs.map((_, i) => ({
    ...spec,
    parts: spec.parts.map((part) => {
      const rank = ranks.get(part.name);
      return rank === undefined ? part : { ...part, scorer: { ...part.scorer, score: () => rank(i) } };
    }),
  }));
}

/** Returns how many were scored now. */
export async function scoreAnswers(
  store: Store,
  { spec, services, now }: { readonly spec: RewardSpec; readonly services: Services; readonly now: Date },
  page: readonly Placed[],
  turnIds: ReadonlyMap<string, readonly string[]>,
): Promise<number> {
  const agent = page[0]?.trajectory.agent;
  if (agent === undefined) return 0;
  const { siblings } = await readSiblings(store, {
    agent,
    turns: page.flatMap((one) => turnIds.get(placedKey(one)) ?? []),
  });
  if (siblings.size === 0) return 0;
  const all = page.flatMap((of) =>
    (turnIds.get(placedKey(of)) ?? []).flatMap((turn): Explored[] => {
      const asked = siblings.get(turn);
      if (asked === undefined) return [];
      return [null, ...asked].map((sibling) => ({ of, turn, sibling, placed: placedAnswer(of, sibling?.id ?? turn) }));
    }),
  );
  const ids = new Map(all.map(({ placed, sibling, turn }) => [placedKey(placed), [sibling?.id ?? turn]]));
  const places = all.map(({ placed }) => placed);
  const known = await readScoresOf(store, places, spec.version);
  const signals = await readSignalsOf(store, places, ids, { labels: usesLabels(spec) });
  const pending = all.filter(({ placed }) => {
    const key = placedKey(placed);
    const signalIds = (signals.get(key) ?? []).map(({ id }) => id);
    return known.get(key)?.evidence !== evidenceOf({ turnIds: ids.get(key)!, signalIds });
  });
  const isPending = new Set(pending);
  const byTurn = new Map<string, Explored[]>();
  for (const one of all) byTurn.set(one.turn, [...(byTurn.get(one.turn) ?? []), one]);
  const owners = [...new Set(pending.map(({ of }) => of))];
  const sizes = await readSizes(store, owners);
  const readable = owners.filter((one) => (sizes.get(placedKey(one)) ?? null) !== null);
  let scored = 0;
  for (const batch of batchesOf(readable, sizes)) {
    const turns = await readTurnsOf(store, batch);
    const scores: Score[] = [];
    for (const [id, group] of byTurn) {
      const { of } = group[0]!;
      const turn = batch.includes(of) ? turns.get(placedKey(of))?.find((one) => one.id === id) : undefined;
      if (turn === undefined || !group.some((one) => isPending.has(one))) continue;
      const keys = group.map(({ placed }) => placedKey(placed));
      const heard = await withCorrections(store, agent, new Map(keys.map((key) => [key, signals.get(key) ?? []])));
      const inputs = group.map(({ placed, sibling }, i) => ({
        trajectory: placed.trajectory,
        turns: [sibling === null ? turn : answeredBy(turn, sibling)],
        signals: heard.get(keys[i]!) ?? [],
      }));
      const specs = await rankedSpecs(spec, inputs, services);
      const about = { day: of.day, at: now.getTime() };
      const waiting = group.map((one, i) =>
        isPending.has(one) ? [scoreOf(specs[i]!, inputs[i]!, about, services)] : [],
      );
      for (const score of await Promise.all(waiting.flat())) scores.push(score);
    }
    await saveScores(store, scores);
    scored += scores.length;
  }
  return scored;
}
