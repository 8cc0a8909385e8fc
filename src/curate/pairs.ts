/**
 * The pairs of a window: finds the evidence that says which of two answers is better, takes it through gates of its own, and
 * compares like with like. A conversation need not be good to teach by comparison, so the score has no gate here; consent has
 * the same as for rows. Candidates wait in the spool as rows do, and are read back a question at a time: memory holds the answers to one.
 *
 * The funnel counts pieces of evidence from the first gate to the last; a pair that is left out leaves both of its answers out.
 */
import { createHash } from 'node:crypto';
import type { Sibling } from '../collect/sibling.ts';
import type { Signal } from '../collect/signal.ts';
import { normalise } from '../collect/thread.ts';
import type { Turn } from '../collect/turn.ts';
import { answeredBy } from '../score/answers.ts';
import type { Score } from '../score/score.ts';
import { type Correction, readCorrections } from '../store/corrections.ts';
import type { Store } from '../store/postgres.ts';
import { answerName, readScoresOf } from '../store/scores.ts';
import { readSiblings } from '../store/siblings.ts';
import { readVoteHistories } from '../store/vote-history.ts';
import {
  batchesOf,
  type Placed,
  placedKey,
  readSignalsOf,
  readSizes,
  readTurnIds,
  readTurnsOf,
} from '../store/window.ts';
import { type Clean, cleanWords } from './anonymise.ts';
import type { Candidates, Passed } from './candidates.ts';
import { alikeIn, column, marked } from './column.ts';
import { isConfidential } from './confidential.ts';
import type { Draft } from './files.ts';
import { countFunnel, type FunnelStep } from './funnel.ts';
import {
  anonymity,
  consent,
  duplicates,
  keyShare,
  lapsed,
  passing,
  region,
  type Seen,
  sourceShare,
  stillHolds,
  tenant,
  userShare,
  usersOf,
} from './gates.ts';
import { isHeldOut } from './held-out.ts';
import { patternOf, questionOf } from './k-anonymity.ts';
import { type Answer, compare, groupOf, type PairRow, type PairSide, type PairSource } from './pair.ts';
import { type Asked, askedOf, type Refused, taskTypeOf } from './row.ts';
import type { Settings } from './settings.ts';
import { type VoteHistory, weighedVote } from './trust.ts';

/** A piece of evidence: what is known of one answer of a turn, or what it should have been. */
export type Piece = { readonly turn: string } & (
  | {
      readonly kind: 'answer';
      /** null: the one that the user got. */
      readonly sibling: Sibling | null;
      readonly votes: readonly Signal[];
      /** Whether the turn was answered more than once. */
      readonly explored: boolean;
    }
  | { readonly kind: 'correction'; readonly correction: Correction }
);

/** Votes of the whole conversation are about its answer where it has one; corrections of it are about its last. */
export function piecesOf(
  trajectory: string,
  turnIds: readonly string[],
  signals: readonly Signal[],
  corrections: readonly Correction[],
  siblings: ReadonlyMap<string, readonly Sibling[]>,
): Piece[] {
  const votes = signals.filter(({ kind, value }) => kind === 'feedback' && value !== null && value >= 0 && value <= 1);
  const votesOn = (id: string) => votes.filter(({ target }) => target.kind === 'turn' && target.id === id);
  const onWhole = turnIds.length === 1 ? votes.filter(({ target }) => target.kind !== 'turn') : [];
  return turnIds.flatMap((turn, i): Piece[] => {
    const others = siblings.get(turn) ?? [];
    const explored = others.length > 0;
    const own = [...votesOn(turn), ...onWhole];
    const wrong = corrections.filter(({ target }) =>
      target.kind === 'turn' ? target.id === turn : target.id === trajectory && i === turnIds.length - 1,
    );
    return [
      ...(own.length > 0 || explored ? [{ kind: 'answer' as const, turn, sibling: null, votes: own, explored }] : []),
      ...others.map((sibling) => ({ kind: 'answer' as const, turn, sibling, votes: votesOn(sibling.id), explored })),
      ...wrong.map((correction) => ({ kind: 'correction' as const, turn, correction })),
    ];
  });
}

type At = { readonly start: number; readonly length: number };
type Question = Pick<PairRow, 'prompt' | 'tools' | 'taskType'>;
/** What waits in the spool: an answer, the question, and what the answer should have been. Beside it the candidate. */
type Spooled = { readonly question: Question; readonly side: PairSide; readonly better?: PairSide };

/** A conversation that a side is from. */
export type PairOrigin = {
  readonly trajectory: string;
  readonly day: string;
  readonly score: number;
  /** Its number where it waits to become a row as well. */
  readonly row: number | null;
};
type Candidate = Answer & {
  /** `number`: of the conversations that have evidence. */
  readonly of: PairOrigin & { readonly number: number };
  readonly users: readonly string[];
  readonly keys: readonly string[];
  readonly sources: readonly string[];
  readonly tenants: readonly string[];
  readonly taskType: string | null;
  readonly question: readonly number[];
  readonly internal: boolean;
  readonly at: At;
  /** What it should have said, in the form of `said`; null: nobody wrote that. */
  readonly corrected: string | null;
};

/** A pair that waits for the gates that look at all. The better side first; one alone brings its correction with it. */
export type Found = {
  readonly source: PairSource;
  readonly group: string;
  readonly gap: number;
  readonly sides: readonly Side[];
};
type Side = Pick<Candidate, 'of' | 'internal' | 'at'>;

export type ChosenPair = {
  readonly pair: PairRow;
  /** The conversations it is from, those of pairs before left out. */
  readonly origins: readonly PairOrigin[];
  /** It holds what is confidential. */
  readonly internal: boolean;
};

export type PairSearch = {
  /** Takes in a page of conversations of the origin that is learned from. `rows`: which of them wait to become rows. */
  look(page: readonly Placed[], seen: ReadonlyMap<string, Seen>, rows: ReadonlyMap<string, number>): Promise<void>;
  /** After all conversations of the window are in the crowd: who else asked what counts for pairs too. */
  choose(): AsyncGenerator<ChosenPair>;
  /** Complete when all are chosen. */
  funnel(): FunnelStep[];
};

export function searchPairs(
  store: Store,
  {
    agent,
    spec,
    settings,
    spool,
    clean,
    found,
  }: {
    agent: string;
    spec: string;
    settings: Settings;
    spool: Draft;
    clean: Clean | null;
    found: Candidates<Found>;
  },
): PairSearch {
  const funnel = countFunnel([
    ...['consent', 'walls', 'size', 'answer', 'redaction', 'confidentiality', 'held out', 'comparison'],
    ...['k-anonymity', 'duplicates', 'user share', 'key share', 'source share'],
  ]);
  /** Where each candidate lies in the spool, with 32 bits of its group; what was corrected needs no group. */
  const [starts, lengths, groups] = [column(Float64Array), column(Uint32Array), column(Uint32Array)];
  const corrected = column(Uint32Array);
  /** How many pieces of evidence each of `found` is. */
  const evidence = column(Uint32Array);
  let conversations = 0;
  const passes = (gate: string, reason: string | null): boolean => {
    funnel.add(gate, reason);
    return reason === null;
  };

  async function take(
    piece: Piece,
    of: Candidate['of'],
    turns: readonly Turn[],
    { walls }: Seen,
    answers: ReadonlyMap<string, Score>,
    histories: ReadonlyMap<string, VoteHistory>,
  ): Promise<void> {
    const found = turns.find(({ id }) => id === piece.turn);
    if (found === undefined) return void passes('answer', 'turns are missing');
    const turn = piece.kind === 'answer' && piece.sibling ? answeredBy(found, piece.sibling) : found;
    const made = askedOf(turn);
    if (!passes('answer', made.kind === 'refused' ? made.reason : brokenOff(turn)) || made.kind === 'refused') return;
    const { said } = made.asked;
    const given = piece.kind === 'correction' ? piece.correction : null;
    const asked = await cleanAsked(clean, made.asked, given?.text ?? '');
    if (asked.kind === 'refused') return void passes('redaction', asked.reason);
    const { prompt, tools, answer, reasoning } = asked;
    const correction = given && { ...given, text: asked.corrected };
    const better = { role: 'assistant' as const, content: correction?.text ?? null };
    const words = [prompt, tools, answer, reasoning, correction?.text ?? ''];
    if (!passes('redaction', clean === null ? stillHolds(words) : null)) return;
    const internal = isConfidential(words, settings.confidential);
    if (!passes('confidentiality', internal && settings.confidential.keep === 'out' ? 'confidential' : null)) return;
    const [users, question] = [usersOf(turns), questionOf(prompt)];
    const heldOut = isHeldOut({ agent, users, question }, settings.holdOut);
    if (!passes('held out', heldOut ? 'kept to measure on' : null)) return;
    const spooled: Spooled = {
      question: { prompt: [...prompt], tools: [...tools], taskType: taskTypeOf([turn]) },
      side: {
        message: answer,
        ...(reasoning !== '' && { reasoning }),
        from: { trajectory: of.trajectory, day: of.day, answer: turn.id },
      },
      ...(correction && {
        better: {
          message: better,
          from: { signal: correction.id, identity: correction.identity },
        },
      }),
    };
    await keep({
      id: turn.id,
      group: groupOf(made.asked),
      said: said.at(-1)!,
      vote: piece.kind === 'answer' ? weighedVote(piece.votes, new Set(usersOf([turn])), histories) : null,
      explored:
        piece.kind === 'answer' && piece.explored
          ? { turn: piece.turn, parts: answers.get(`${of.day} ${answerName(turn.id)}`)?.parts ?? {} }
          : null,
      of,
      users,
      keys: walls.keys,
      sources: walls.sources,
      tenants: walls.tenants.flatMap((one) => one ?? []),
      taskType: spooled.question.taskType,
      question: [...patternOf(question)],
      internal,
      at: await spool.add(JSON.stringify(spooled)),
      corrected: correction && normalise(better),
    });
  }

  async function keep(candidate: Candidate): Promise<void> {
    const { start, length } = await spool.add(JSON.stringify(candidate));
    if (candidate.corrected !== null) corrected.push(starts.length);
    starts.push(start);
    lengths.push(length);
    groups.push(Number.parseInt(candidate.group.slice(0, 8), 16));
  }
  const read = async (number: number): Promise<Candidate> =>
    JSON.parse(await spool.read({ start: starts.get(number), length: lengths.get(number) }));

  async function find(source: PairSource, sides: readonly [Candidate, ...Candidate[]], gap: number, other: string) {
    const [{ group, said, of, taskType, question }] = sides;
    const fingerprint = createHash('sha256')
      .update(JSON.stringify([source, group, said, other]))
      .digest('hex');
    const all = (ownersOf: (side: Candidate) => readonly string[]) => [...new Set(sides.flatMap(ownersOf))];
    const one: Passed = {
      trajectory: of.trajectory,
      day: of.day,
      users: all(({ users }) => users),
      keys: all(({ keys }) => keys),
      sources: all(({ sources }) => sources),
      tenants: all(({ tenants }) => tenants),
      taskType,
      question: Uint32Array.from(question),
      score: gap,
      fingerprint,
    };
    const kept = sides.map(({ of: from, internal, at }) => ({ of: from, internal, at }));
    await found.add(one, `${group} ${fingerprint}`, { source, group, gap, sides: kept });
    evidence.push(sides.length);
  }

  /** Answers to one question, which are read together; the question of which was found first comes first. */
  function askedTogether(): Uint32Array[] {
    const isCorrected = new Uint8Array(starts.length);
    for (let i = 0; i < corrected.length; i++) isCorrected[corrected.get(i)] = 1;
    const answers = marked(
      Uint32Array.from({ length: starts.length }, (_, i) => i),
      (number) => isCorrected[number] === 0,
    );
    const together = [...alikeIn(answers, groups.get)];
    const alone = together.reduce((rest, { length }) => rest - length, answers.length);
    funnel.add('comparison', 'no other answer to the question', alone);
    return together.sort((a, b) => a[0]! - b[0]!);
  }

  async function compareAll(): Promise<void> {
    for (let i = 0; i < corrected.length; i++) {
      const one = await read(corrected.get(i));
      const same = one.corrected === one.said ? 'says what the answer says' : null;
      if (passes('comparison', same)) await find('correction', [one], 1, one.corrected!);
    }
    for (const numbers of askedTogether()) {
      const answers: Candidate[] = [];
      for (const number of numbers) answers.push(await read(number));
      const { pairs, left } = compare(answers, settings.minGap);
      for (const { reason } of left) passes('comparison', reason);
      for (const { source, chosen, rejected, gap } of pairs) {
        await find(source, [chosen, rejected], gap, rejected.said);
        funnel.add('comparison', null, 2);
      }
    }
  }

  return {
    async look(page, seen, rows) {
      const turnIds = await readTurnIds(store, page);
      const idsOf = (one: Placed) => turnIds.get(placedKey(one)) ?? [];
      const { siblings } = await readSiblings(store, { agent, turns: page.flatMap(idsOf) });
      const withSiblings = (id: string) => [id, ...(siblings.get(id) ?? []).map((sibling) => sibling.id)];
      const answerIds = new Map(page.map((one) => [placedKey(one), idsOf(one).flatMap(withSiblings)]));
      const signals = await readSignalsOf(store, page, answerIds);
      const voters = [...signals.values()].flat().flatMap(({ user }) => user ?? []);
      const histories = await readVoteHistories(store, agent, voters);
      const corrections = await readCorrections(store, {
        agent,
        turns: page.flatMap(idsOf),
        trajectories: page.map(({ trajectory }) => trajectory.id),
      });
      const pieces = new Map<string, Piece[]>();
      for (const one of page) {
        const key = placedKey(one);
        const all = piecesOf(one.trajectory.id, idsOf(one), signals.get(key) ?? [], corrections, siblings);
        pieces.set(
          key,
          all.filter((piece) => {
            const whole = seen.get(key)!;
            const wall = region.reason(whole, settings) ?? tenant.reason(whole, settings);
            return passes('consent', refusalOf(piece, whole, settings)) && passes('walls', wall);
          }),
        );
      }
      const agreed = page.filter((one) => pieces.get(placedKey(one))!.length > 0);
      const sizes = await readSizes(store, agreed);
      const isSmall = (one: Placed) => (sizes.get(placedKey(one)) ?? null) !== null;
      for (const one of agreed)
        for (const _ of pieces.get(placedKey(one))!) passes('size', isSmall(one) ? null : 'too large to read');
      for (const batch of batchesOf(agreed.filter(isSmall), sizes)) {
        const turns = await readTurnsOf(store, batch);
        const explored = batch.flatMap((one) => placedAnswers(one, pieces.get(placedKey(one))!));
        const answers = await readScoresOf(store, explored, spec);
        for (const one of batch) {
          const [own, whole] = [turns.get(placedKey(one)) ?? [], seen.get(placedKey(one))!];
          const of = {
            trajectory: one.trajectory.id,
            day: one.day,
            score: whole.score?.total ?? 0,
            row: rows.get(placedKey(one)) ?? null,
            number: conversations++,
          };
          for (const piece of pieces.get(placedKey(one))!) await take(piece, of, own, whole, answers, histories);
        }
      }
    },

    async *choose() {
      await compareAll();
      let kept = found.ranked();
      const piecesOf = (numbers: Uint32Array) => numbers.reduce((sum, number) => sum + evidence.get(number), 0);
      for (const gate of [anonymity, duplicates, userShare, keyShare, sourceShare]) {
        const verdict = await passing(gate, kept, found, settings);
        funnel.add(gate.name, verdict.reason, piecesOf(verdict.left));
        funnel.add(gate.name, null, piecesOf(verdict.kept));
        kept = verdict.kept;
      }
      const isNamed = new Uint8Array(conversations);
      for await (const one of found.inOrder(kept)) {
        const origins: PairOrigin[] = [];
        for (const { of } of one.sides) {
          const { number, ...origin } = of;
          if (isNamed[number] === 0) origins.push(origin);
          isNamed[number] = 1;
        }
        const internal = one.sides.some((side) => side.internal);
        yield { pair: await rowOf(one, async (at) => JSON.parse(await spool.read(at))), origins, internal };
      }
    },
    funnel: () => funnel.steps(),
  };
}

/** Where the scores of explored answers are kept. */
const placedAnswers = (of: Placed, pieces: readonly Piece[]): Placed[] =>
  pieces.flatMap((piece) =>
    piece.kind === 'answer' && piece.explored
      ? [{ ...of, trajectory: { ...of.trajectory, id: answerName(piece.sibling?.id ?? piece.turn) } }]
      : [],
  );

/** By the conversation, and for words that are not of it by whoever wrote them. */
function refusalOf(piece: Piece, seen: Seen, settings: Settings): string | null {
  const reason = consent.reason(seen, settings);
  if (reason !== null || piece.kind !== 'correction') return reason;
  return lapsed(piece.correction.by, settings.on) === null ? null : 'corrected by somebody who has not agreed';
}

const brokenOff = ({ status, choices }: Turn): string | null => {
  if (status !== 'ok') return 'its turn failed';
  return choices[0]?.finishReason === 'length' ? 'cut at the token limit' : null;
};

async function rowOf({ source, group, gap, sides }: Found, read: (at: At) => Promise<Spooled>): Promise<PairRow> {
  const [chosen, rejected] = [await read(sides[0]!.at), await read(sides.at(-1)!.at)];
  return {
    source,
    group,
    gap,
    ...chosen.question,
    chosen: chosen.better ?? chosen.side,
    rejected: rejected.side,
  };
}

type AskedWords = Pick<Asked, 'prompt' | 'tools' | 'answer' | 'reasoning'> & { readonly corrected: string };

/** The question, both answers and the thoughts, with what is personal replaced, each value by the same placeholder. */
async function cleanAsked(
  clean: Clean | null,
  { prompt, tools, answer, reasoning }: Asked,
  corrected: string,
): Promise<({ readonly kind: 'asked' } & AskedWords) | Refused> {
  if (clean === null) return { kind: 'asked', prompt, tools, answer, reasoning, corrected };
  const cleaned = await cleanWords(clean, { messages: [...prompt, answer], tools, texts: [reasoning, corrected] });
  if (cleaned.kind === 'refused') return cleaned;
  const { messages, texts } = cleaned.value;
  return {
    kind: 'asked',
    prompt: messages.slice(0, -1),
    tools: [...cleaned.value.tools],
    answer: messages.at(-1) as Asked['answer'],
    reasoning: texts[0]!,
    corrected: texts[1]!,
  };
}
