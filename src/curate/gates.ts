/**
 * The gates between what was recorded and what is learned from, in the order in which they are asked. Pure. A gate
 * answers null (pass) or the reason for leaving a conversation out; reasons are few and hold no values, so that they can
 * be counted. The first gates need only the trajectory's row and its score; what they leave out is never read whole. The
 * last two look at all that passed so far together.
 */
import { createHash } from 'node:crypto';
import { mayTrain, type Training } from '../collect/own-traffic.ts';
import { redact, TooMuchWork } from '../collect/redact/redact.ts';
import type { Counts } from '../collect/redact/redactor.ts';
import type { Trajectory } from '../collect/trajectory.ts';
import type { Turn } from '../collect/turn.ts';
import type { Score } from '../score/score.ts';
import type { Standing } from '../store/consents.ts';
import type { Settings } from './dataset.ts';
import type { Made, Thread } from './row.ts';

export type Seen = {
  readonly trajectory: Trajectory;
  /** What everybody in it says today. */
  readonly standing: Standing;
  readonly score: Score | null;
};
/** What reading all of it would bring; null: too much. */
export type Sized = { readonly bytes: number | null };
export type Whole = Seen & { readonly turns: readonly Turn[]; readonly made: Made };

export type Gate<T> = {
  readonly name: string;
  readonly reason: (candidate: T, settings: Settings) => string | null;
};

/** Only what users did, or only what was simulated: never shadow, evaluation or judge traffic. */
const origin: Gate<Seen> = {
  name: 'origin',
  // Consent has a gate of its own, so it is left out of this question.
  reason: ({ trajectory }, { on }) =>
    mayTrain({ origin: trajectory.origin, consent: 'given' }, on) ? null : `origin ${trajectory.origin}`,
};

/** Given by everybody in it when they spoke, and given now, without a withdrawal in between. */
export const consent: Gate<Seen> = {
  name: 'consent',
  reason: ({ trajectory, standing }, { on }) => {
    if (!mayTrain(trajectory, on)) {
      if (trajectory.consent === 'withdrawn') return 'withdrawn before';
      return standing === 'later' ? 'given afterwards' : 'not given';
    }
    return lapsed(standing, on);
  },
};

/** Why what was agreed to when it was recorded may not be learned from any more; null: it may. */
export function lapsed(standing: Standing | undefined, on: Training): string | null {
  if (standing === 'withdrawn') return 'withdrawn since';
  if (on === 'simulation' || standing === 'given') return null;
  // Consent that begins after the turn was given anew: what was withdrawn in between stays withdrawn.
  return standing === 'later' ? 'withdrawn since' : 'not given';
}

const score: Gate<Seen> = {
  name: 'score',
  reason: ({ score: found }, { minScore, minMeasured }) => {
    if (found === null) return 'not scored';
    if (found.total === null) return 'nothing measured';
    if (found.measured < minMeasured) return 'too little measured';
    return found.total >= minScore ? null : `below ${minScore}`;
  },
};

/** What would fill the memory of whoever reads it is not read. */
const size: Gate<Sized> = { name: 'size', reason: ({ bytes }) => (bytes === null ? 'too large to read' : null) };

const errors: Gate<Whole> = {
  name: 'errors',
  reason: ({ trajectory, turns }) => {
    if (trajectory.errors > 0) return 'a turn failed';
    return turns.every(({ status }) => status === 'ok') ? null : 'a turn was broken off';
  },
};

const latency: Gate<Whole> = {
  name: 'latency',
  reason: ({ turns }, { maxLatencySeconds }) =>
    turns.every(({ latencyMs }) => latencyMs <= maxLatencySeconds * 1000)
      ? null
      : `an answer over ${maxLatencySeconds} s`,
};

/** It came to an end: the last answer is whole and waits for nothing. */
const complete: Gate<Whole> = {
  name: 'complete',
  reason: ({ trajectory, turns, score: found, made }) => {
    // The row counts a turn that is still on its way, or one came after scoring; next time both will be there.
    if (turns.length !== trajectory.turns) return 'turns are missing';
    if (turns.length !== found?.turns.length) return 'went on after it was scored';
    if (made.kind === 'refused') return made.reason;
    const last = turns.findLast(({ endpoint }) => endpoint === 'chat')?.choices[0];
    if (last?.finishReason === 'length') return 'cut at the token limit';
    if (last?.finishReason === 'tool_calls') return 'ends in a tool call';
    return last?.finishReason === 'stop' ? null : 'no proper end';
  },
};

/** Redaction ran before anything was written. If it finds something now, its rules have grown, and the row stays out. */
const redaction: Gate<Whole> = {
  name: 'redaction',
  reason: ({ made }) =>
    made.kind === 'refused' ? made.reason : stillHolds([made.row.taskType, made.row.threads.map(wordsOf)]),
};

/** Why these words stay out: what today's redaction finds in them. */
export function stillHolds(words: unknown): string | null {
  const counts: Counts = {};
  try {
    redact(words, counts);
  } catch (error) {
    if (error instanceof TooMuchWork) return 'too large to check';
    throw error;
  }
  const kinds = Object.keys(counts).sort();
  return kinds.length === 0 ? null : `still holds ${kinds.join(' and ')}`;
}

/** What people and the model wrote; ids and token ids are ours. */
const wordsOf = ({ messages, tools, answers }: Thread) => ({
  messages,
  tools,
  reasoning: answers.map(({ reasoning }) => reasoning),
});

export const seenGates: readonly Gate<Seen>[] = [origin, consent, score];
export const sizedGates: readonly Gate<Sized>[] = [size];
export const wholeGates: readonly Gate<Whole>[] = [errors, latency, complete, redaction];

/** What the last gates need of a conversation that passed all others. */
export type Passed = {
  readonly trajectory: string;
  readonly day: string;
  /** Everybody who took part; nobody where no user is known. */
  readonly users: readonly string[];
  readonly score: number;
  readonly fingerprint: string;
};

type Verdict<T> = { readonly kept: T[]; readonly left: { readonly candidate: T; readonly reason: string }[] };
export type SetGate = {
  readonly name: string;
  readonly select: <T extends Passed>(all: readonly T[], settings: Settings, seed: number) => Verdict<T>;
};

/**
 * Best first. Among equals the seed draws, by what was said and then by id: neither time nor order of arrival has a say, and
 * the same conversations recorded again under other ids are drawn alike.
 */
function ranked<T extends Passed>(all: readonly T[], seed: number): T[] {
  const draw = (...of: string[]) =>
    createHash('sha256')
      .update(JSON.stringify([seed, ...of]))
      .digest('hex');
  return all
    .map((one) => ({ one, drawn: draw(one.fingerprint) + draw(one.trajectory, one.day) }))
    .sort((a, b) => b.one.score - a.one.score || (a.drawn < b.drawn ? -1 : 1))
    .map(({ one }) => one);
}

/** Of conversations that say the same, the best is kept. */
export const duplicates: SetGate = {
  name: 'duplicates',
  select: (all, _settings, seed) => {
    const known = new Set<string>();
    const verdict: Verdict<(typeof all)[number]> = { kept: [], left: [] };
    for (const candidate of ranked(all, seed)) {
      if (known.has(candidate.fingerprint)) verdict.left.push({ candidate, reason: 'same question and answer' });
      else verdict.kept.push(candidate);
      known.add(candidate.fingerprint);
    }
    return verdict;
  },
};

/**
 * The most rows one user may have, so that nobody teaches the model by talking a lot: the largest number that is at most
 * `share` of what is then kept. One row is always allowed; with fewer users than 1 / share that is all there can be.
 */
export function userLimit(rowsPerUser: readonly number[], share: number): number {
  const largest = rowsPerUser.reduce((a, b) => Math.max(a, b), 0);
  const kept = (limit: number) => rowsPerUser.reduce((sum, rows) => sum + Math.min(rows, limit), 0);
  // limit / kept(limit) never falls as the limit grows, so halving finds where it becomes too much. The small addition is
  // for products such as 0.29 × 100, which come out just below 29.
  let fits = 1;
  let tooMuch = largest + 1;
  while (tooMuch - fits > 1) {
    const limit = Math.floor((fits + tooMuch) / 2);
    if (limit <= share * kept(limit) + 1e-9) fits = limit;
    else tooMuch = limit;
  }
  return fits;
}

export const userShare: SetGate = {
  name: 'user share',
  select: (all, { maxUserShare }, seed) => {
    const rows = new Map<string, number>();
    for (const user of all.flatMap(({ users }) => users)) rows.set(user, (rows.get(user) ?? 0) + 1);
    const anonymous = all.filter(({ users }) => users.length === 0).map(() => 1);
    // A row of several is counted once, for whoever has most, so that it does not make the whole look larger than it is.
    const counted = new Map<string, number>();
    for (const { users } of all) {
      const [most] = [...users].sort((a, b) => rows.get(b)! - rows.get(a)! || (a < b ? -1 : 1));
      if (most !== undefined) counted.set(most, (counted.get(most) ?? 0) + 1);
    }
    const limit = userLimit([...counted.values(), ...anonymous], maxUserShare);
    const taken = new Map<string, number>();
    const verdict: Verdict<(typeof all)[number]> = { kept: [], left: [] };
    for (const candidate of ranked(all, seed)) {
      const { users } = candidate;
      if (users.some((user) => (taken.get(user) ?? 0) >= limit))
        verdict.left.push({ candidate, reason: `over ${Math.round(maxUserShare * 1000) / 10}% from one user` });
      else {
        verdict.kept.push(candidate);
        for (const user of users) taken.set(user, (taken.get(user) ?? 0) + 1);
      }
    }
    return verdict;
  },
};

export const setGates: readonly SetGate[] = [duplicates, userShare];

export const gateNames: readonly string[] = [...seenGates, ...sizedGates, ...wholeGates, ...setGates].map(
  ({ name }) => name,
);
