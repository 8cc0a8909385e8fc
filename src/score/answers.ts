/**
 * Scores of single answers, where a turn was answered more than once (collect/sibling.ts): each answer alone, in place of the
 * turn's, so that they can be compared with each other. They are kept beside the scores of conversations under a name that no
 * conversation can have, and are part of no mean.
 */
import type { Sibling } from '../collect/sibling.ts';
import type { Turn } from '../collect/turn.ts';
import type { Store } from '../store/postgres.ts';
import { answerName, readScoresOf, saveScores } from '../store/scores.ts';
import { readSiblings } from '../store/siblings.ts';
import { batchesOf, type Placed, placedKey, readSignalsOf, readSizes, readTurnsOf } from '../store/window.ts';
import { evidenceOf, type Score } from './score.ts';
import { type RewardSpec, scoreOf } from './weighted.ts';

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

/** Returns how many were scored now. */
export async function scoreAnswers(
  store: Store,
  spec: RewardSpec,
  page: readonly Placed[],
  turnIds: ReadonlyMap<string, readonly string[]>,
  now: Date,
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
  const signals = await readSignalsOf(store, places, ids);
  const pending = all.filter(({ placed }) => {
    const key = placedKey(placed);
    const about = (signals.get(key) ?? []).map(({ id }) => id);
    return known.get(key)?.evidence !== evidenceOf(ids.get(key)!, about);
  });
  const owners = [...new Set(pending.map(({ of }) => of))];
  const sizes = await readSizes(store, owners);
  const readable = owners.filter((one) => (sizes.get(placedKey(one)) ?? null) !== null);
  let scored = 0;
  for (const batch of batchesOf(readable, sizes)) {
    const turns = await readTurnsOf(store, batch);
    const scores: Score[] = [];
    for (const { of, turn: id, sibling, placed } of pending) {
      const turn = batch.includes(of) ? turns.get(placedKey(of))?.find((one) => one.id === id) : undefined;
      if (turn === undefined) continue;
      const input = {
        trajectory: placed.trajectory,
        turns: [sibling === null ? turn : answeredBy(turn, sibling)],
        signals: signals.get(placedKey(placed)) ?? [],
      };
      scores.push(await scoreOf(spec, input, { day: of.day, at: now.getTime() }));
    }
    await saveScores(store, scores);
    scored += scores.length;
  }
  return scored;
}
