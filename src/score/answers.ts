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
import type { Cost, Measured, ScorerInput, Services } from './scorer.ts';
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

/** Of one that is shown all of the answers. */
const contextOfAll = (inputs: readonly ScorerInput[], services: Services, signal: AbortSignal) =>
  contextOf({ ...inputs[0]!, turns: inputs.flatMap(({ turns }) => turns) }, services, () => signal);

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
    const ranked = scorer.rank(inputs, contextOfAll(inputs, services, signal));
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

/** The answers to one turn, together. */
type Group = {
  readonly of: Placed;
  readonly inputs: readonly ScorerInput[];
  /** Whether each has no score from what is known of it now. */
  readonly isPending: readonly boolean[];
};
type Page = {
  readonly spec: RewardSpec;
  readonly placed: readonly Placed[];
  readonly turnIds: ReadonlyMap<string, readonly string[]>;
};

/** Those with something to score, as many at a time as are read together. */
async function* groupsOf(store: Store, { spec, placed: page, turnIds }: Page): AsyncGenerator<Group[]> {
  const agent = page[0]?.trajectory.agent;
  if (agent === undefined) return;
  const { siblings } = await readSiblings(store, {
    agent,
    turns: page.flatMap((one) => turnIds.get(placedKey(one)) ?? []),
  });
  if (siblings.size === 0) return;
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
  for (const batch of batchesOf(readable, sizes)) {
    const turns = await readTurnsOf(store, batch);
    const groups = [...byTurn].flatMap(([id, group]) => {
      const { of } = group[0]!;
      const turn = batch.includes(of) ? turns.get(placedKey(of))?.find((one) => one.id === id) : undefined;
      return turn === undefined || !group.some((one) => isPending.has(one)) ? [] : [{ of, turn, group }];
    });
    const keys = groups.flatMap(({ group }) => group.map(({ placed }) => placedKey(placed)));
    const heard = await withCorrections(store, agent, new Map(keys.map((key) => [key, signals.get(key) ?? []])));
    yield groups.map(({ of, turn, group }) => ({
      of,
      inputs: group.map(({ placed, sibling }) => ({
        trajectory: placed.trajectory,
        turns: [sibling === null ? turn : answeredBy(turn, sibling)],
        signals: heard.get(placedKey(placed)) ?? [],
      })),
      isPending: group.map((one) => isPending.has(one)),
    }));
  }
}

/** Returns how many were scored now. */
export async function scoreAnswers(
  store: Store,
  { services, now, ...page }: Page & { readonly services: Services; readonly now: Date },
): Promise<number> {
  let scored = 0;
  for await (const groups of groupsOf(store, page)) {
    const scores: Score[] = [];
    for (const { of, inputs, isPending } of groups) {
      const specs = await rankedSpecs(page.spec, inputs, services);
      const about = { day: of.day, at: now.getTime() };
      const waiting = inputs.flatMap((input, i) => (isPending[i] ? [scoreOf(specs[i]!, input, about, services)] : []));
      for (const score of await Promise.all(waiting)) scores.push(score);
    }
    await saveScores(store, scores);
    scored += scores.length;
  }
  return scored;
}

export type AnswersPlan = { readonly answers: number; readonly costs: readonly Cost[] };

/** What scoring them would take. Asks nobody. */
export async function planAnswers(
  store: Store,
  { services, signal, ...page }: Page & { readonly services: Services; readonly signal: AbortSignal },
): Promise<AnswersPlan> {
  let answers = 0;
  const costs: Cost[] = [];
  for await (const groups of groupsOf(store, page))
    for (const { inputs, isPending } of groups) {
      const pending = inputs.filter((_, i) => isPending[i]);
      answers += pending.length;
      for (const { scorer } of page.spec.parts) {
        const { rankCost, cost } = scorer;
        if (rankCost) costs.push(await rankCost(inputs, contextOfAll(inputs, services, signal)));
        else if (cost)
          for (const input of pending)
            costs.push(
              await cost(
                input,
                contextOf(input, services, () => signal),
              ),
            );
      }
    }
  return { answers, costs };
}
