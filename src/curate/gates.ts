/**
 * The gates between what was recorded and what is learned from, in the order in which they are asked. Pure. A gate
 * answers null (pass) or the reason for leaving a conversation out; reasons are few and hold no values, so that they can
 * be counted. The first gates need only the trajectory's row, what it came with and its score; what they leave out is never read
 * whole. The last look at all that passed so far together: how many people asked the like of it first, because that counts people
 * and what follows removes their rows; shares last, because they are shares of what is kept.
 */
import { createHash } from 'node:crypto';
import { mayTrain, type Training } from '../collect/own-traffic.ts';
import { redact, TooMuchWork } from '../collect/redact/redact.ts';
import type { Counts } from '../collect/redact/redactor.ts';
import type { Trajectory } from '../collect/trajectory.ts';
import type { Turn } from '../collect/turn.ts';
import type { Score } from '../score/score.ts';
import type { Standing } from '../store/consents.ts';
import type { Walls } from '../store/walls.ts';
import { isConfidential } from './confidential.ts';
import { isHeldOut } from './held-out.ts';
import { createCrowd, type Pattern, questionOf } from './k-anonymity.ts';
import type { Signature } from './minhash.ts';
import { firstOfAlike } from './near-duplicates.ts';
import { askOwn } from './own-gate.ts';
import type { Made, Thread } from './row.ts';
import type { Settings } from './settings.ts';
import { attainable, withinShare } from './shares.ts';

export type Seen = {
  readonly trajectory: Trajectory;
  /** What everybody in it says today. */
  readonly standing: Standing;
  readonly walls: Walls;
  /** It came with a key whose scores of its kind of task jumped, and nobody has looked yet. */
  readonly shifted: boolean;
  readonly score: Score | null;
};
/** What reading all of it would bring; null: too much. */
export type Sized = { readonly bytes: number | null };
export type Whole = Seen & {
  readonly turns: readonly Turn[];
  readonly made: Made;
  /** What is personal was looked for under the agent's own rules, and replaced (anonymise.ts). */
  readonly isClean?: boolean;
};

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

/** A wall: all of it is from this side, or everybody in it agreed that it crosses. */
const behind = (from: readonly (string | null)[], side: string | undefined, mayCross: boolean): boolean =>
  mayCross || from.every((one) => one === (side ?? null));

export const region: Gate<Seen> = {
  name: 'region',
  reason: ({ walls }, { region: side }) =>
    behind(walls.regions, side, walls.mayTransfer) ? null : 'of another region, without consent to transfer',
};

export const tenant: Gate<Seen> = {
  name: 'tenant',
  reason: ({ walls }, { tenant: side }) =>
    behind(walls.tenants, side, walls.mayCrossTenants) ? null : 'of another tenant, without consent to cross',
};

const shifts: Gate<Seen> = {
  name: 'shifts',
  reason: ({ shifted }) => (shifted ? 'held for a person: scores of its key jumped' : null),
};

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

/** Redaction ran before anything was written. Where nobody has looked again, what it finds now keeps the row out. */
const redaction: Gate<Whole> = {
  name: 'redaction',
  reason: ({ made, isClean }) =>
    made.kind === 'refused'
      ? made.reason
      : isClean
        ? null
        : stillHolds([made.row.taskType, made.row.threads.map(wordsOf)]),
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

/** Where it is to be kept out; kept inside it passes, and the dataset is marked (run.ts). */
const confidentiality: Gate<Whole> = {
  name: 'confidentiality',
  reason: (candidate, { confidential }) =>
    confidential.keep === 'out' && holdsConfidential(candidate, confidential) ? 'confidential' : null,
};

export const holdsConfidential = ({ made }: Pick<Whole, 'made'>, rules: Settings['confidential']): boolean =>
  made.kind === 'row' && isConfidential(made.row.threads.map(wordsOf), rules);

const heldOut: Gate<Whole> = {
  name: 'held out',
  reason: ({ trajectory, turns, made }, { holdOut }) =>
    made.kind === 'row' &&
    isHeldOut(
      { agent: trajectory.agent, users: usersOf(turns), question: questionOf(made.row.threads[0]!.messages) },
      holdOut,
    )
      ? 'kept to measure on'
      : null,
};

export const usersOf = (turns: readonly Turn[]): string[] => [...new Set(turns.flatMap(({ user }) => user ?? []))];

/** Those of the agent's own file, in their order, each with a line of its own in the funnel. */
const ownGates = ({ gates }: Settings): Gate<Whole>[] =>
  gates.map((own) => ({
    name: own.name,
    reason: ({ made }) => (made.kind === 'row' ? askOwn(own, made.row) : made.reason),
  }));

export const seenGates: readonly Gate<Seen>[] = [origin, consent, region, tenant, shifts, score];
export const sizedGates: readonly Gate<Sized>[] = [size];
export const wholeGates = (settings: Settings): readonly Gate<Whole>[] => [
  ...[errors, latency, complete, redaction, confidentiality, heldOut],
  ...ownGates(settings),
];

/** What the last gates need of a conversation that passed all others. */
export type Passed = {
  readonly trajectory: string;
  readonly day: string;
  /** Everybody who took part; nobody where no user is known. */
  readonly users: readonly string[];
  readonly keys: readonly string[];
  readonly sources: readonly string[];
  readonly tenants: readonly string[];
  readonly taskType: string | null;
  readonly score: number;
  readonly fingerprint: string;
  readonly question: Pattern;
};
/** With what was said in it, to be compared. */
export type PassedWhole = Passed & { readonly wording: Signature };

type Verdict<T> = { readonly kept: T[]; readonly left: { readonly candidate: T; readonly reason: string }[] };
export type SetGate<Of = Passed> = {
  readonly name: string;
  readonly select: <T extends Of>(all: readonly T[], settings: Settings, seed: number) => Verdict<T>;
};

/** Lists that are in the order of a seed already: what a gate left of one that was. */
const inOrderOf = new WeakMap<readonly unknown[], number>();

/**
 * Best first. Among equals the seed draws, by what was said and then by id: neither time nor order of arrival has a say, and
 * the same conversations recorded again under other ids are drawn alike.
 */
function ranked<T extends Passed>(all: readonly T[], seed: number): readonly T[] {
  if (inOrderOf.get(all) === seed) return all;
  const draw = (...of: string[]) =>
    createHash('sha256')
      .update(JSON.stringify([seed, ...of]))
      .digest('hex');
  const order = all
    .map((one) => ({ one, drawn: draw(one.fingerprint) }))
    .sort((a, b) => {
      if (a.one.score !== b.one.score) return b.one.score - a.one.score;
      if (a.drawn !== b.drawn) return a.drawn < b.drawn ? -1 : 1;
      return draw(a.one.trajectory, a.one.day) < draw(b.one.trajectory, b.one.day) ? -1 : 1;
    })
    .map(({ one }) => one);
  inOrderOf.set(order, seed);
  return order;
}

/** Those with a reason are left out. */
function divided<T>(all: readonly T[], reasonOf: (candidate: T, i: number) => string | null): Verdict<T> {
  const verdict: Verdict<T> = { kept: [], left: [] };
  for (const [i, candidate] of all.entries()) {
    const reason = reasonOf(candidate, i);
    if (reason === null) verdict.kept.push(candidate);
    else verdict.left.push({ candidate, reason });
  }
  const seed = inOrderOf.get(all);
  if (seed !== undefined) inOrderOf.set(verdict.kept, seed);
  return verdict;
}

/** `others`: who else asked what; pairs are few, and the people of all conversations count for them. */
export const anonymity = (others: readonly Pick<Passed, 'question' | 'users'>[] = []): SetGate => ({
  name: 'k-anonymity',
  select: (all, { kAnonymity: k }) => {
    if (k === 1) return { kept: [...all], left: [] };
    const crowd = createCrowd(k);
    for (const { question, users } of [...others, ...all]) crowd.add(question, users);
    return divided(all, ({ question }) => (crowd.size(question) >= k ? null : `fewer than ${k} people asked the like`));
  },
});

/** Of conversations that say the same, the best is kept. */
export const duplicates: SetGate = {
  name: 'duplicates',
  select: (all, _settings, seed) => {
    const known = new Set<string>();
    return divided(ranked(all, seed), ({ fingerprint }) => {
      if (known.has(fingerprint)) return 'same question and answer';
      known.add(fingerprint);
      return null;
    });
  },
};

export const nearDuplicates: SetGate<PassedWhole> = {
  name: 'near-duplicates',
  select: (all, { nearDuplicate }, seed) => {
    if (nearDuplicate === 1) return { kept: [...all], left: [] };
    const order = ranked(all, seed);
    const first = firstOfAlike(
      order.map(({ wording }) => wording),
      nearDuplicate,
    );
    return divided(order, (_, i) => (first[i] ? null : 'nearly the same words'));
  },
};

function shareGate(
  name: string,
  one: string,
  ownersOf: (candidate: Passed) => readonly string[],
  shareOf: (settings: Settings, of: readonly (readonly string[])[]) => number,
): SetGate {
  return {
    name,
    select: (all, settings, seed) => {
      const order = ranked(all, seed);
      const of = order.map(ownersOf);
      const share = shareOf(settings, of);
      const fits = withinShare(of, share);
      return divided(order, (_, i) => (fits[i] ? null : `over ${Math.round(share * 1000) / 10}% from ${one}`));
    },
  };
}

export const userShare = shareGate(
  'user share',
  'one user',
  ({ users }) => users,
  ({ maxUserShare }) => maxUserShare,
);
export const keyShare = shareGate(
  'key share',
  'one key',
  ({ keys }) => keys,
  ({ maxKeyShare }, of) => attainable(of, maxKeyShare),
);
/** Whoever can import a file needs no key. */
export const sourceShare = shareGate(
  'source share',
  'one source',
  ({ sources }) => sources,
  ({ maxSourceShare }, of) => attainable(of, maxSourceShare),
);
const tenantShare = shareGate(
  'tenant share',
  'one tenant',
  ({ tenants }) => tenants,
  ({ maxTenantShare }, of) => attainable(of, maxTenantShare),
);
const balance = shareGate(
  'balance',
  'one task type',
  ({ taskType }) => [taskType ?? 'unknown'],
  ({ maxTypeShare }, of) => attainable(of, maxTypeShare),
);

export const setGates: readonly SetGate<PassedWhole>[] = [
  ...[anonymity(), duplicates, nearDuplicates],
  ...[userShare, keyShare, sourceShare, tenantShare, balance],
];

export const gateNames = (settings: Settings): string[] =>
  [...seenGates, ...sizedGates, ...wholeGates(settings), ...setGates].map(({ name }) => name);
