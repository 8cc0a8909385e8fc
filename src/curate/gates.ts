/**
 * The gates between what was recorded and what is learned from, in the order in which they are asked. Pure. A gate
 * answers null (pass) or the reason for leaving a conversation out; reasons are few and hold no values, so that they can
 * be counted. The first gates need only the trajectory's row, what it came with and its score; what they leave out is never read
 * whole. The last look at all that passed so far together: how many people asked the like of it first, because that counts people
 * and what follows removes their rows; shares last, because they are shares of what is kept.
 */
import { mayTrain, type Training } from '../collect/own-traffic.ts';
import { redact, TooMuchWork } from '../collect/redact/redact.ts';
import type { Counts } from '../collect/redact/redactor.ts';
import type { Rules } from '../collect/redact/rules.ts';
import type { Trajectory } from '../collect/trajectory.ts';
import type { Turn } from '../collect/turn.ts';
import type { Score } from '../score/score.ts';
import type { Standing } from '../store/consents.ts';
import type { Walls } from '../store/walls.ts';
import type { Waiting } from './candidates.ts';
import { alikeIn, marked } from './column.ts';
import { isConfidential } from './confidential.ts';
import { isHeldOut } from './held-out.ts';
import { questionOf } from './k-anonymity.ts';
import type { Owners } from './names.ts';
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
export function stillHolds(words: unknown, rules?: Rules): string | null {
  const counts: Counts = {};
  try {
    redact(words, counts, rules === undefined ? {} : { rules: { ...rules, policyOf: () => 'never' } });
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

/** Asked of all that are left, best first: whom it keeps, and why not the others. */
export type SetGate = {
  readonly name: string;
  readonly judge: (order: Uint32Array, of: Waiting, settings: Settings) => Promise<Judged>;
};
type Judged = { readonly fits: Uint8Array; readonly otherwise: string };

/** Those that a gate keeps, in their order, and why it leaves the others out. */
export async function passing(
  gate: SetGate,
  order: Uint32Array,
  of: Waiting,
  settings: Settings,
): Promise<{ readonly kept: Uint32Array; readonly left: Uint32Array; readonly reason: string }> {
  const { fits, otherwise } = await gate.judge(order, of, settings);
  return {
    kept: marked(order, (_, i) => fits[i] === 1),
    left: marked(order, (_, i) => fits[i] === 0),
    reason: otherwise,
  };
}

/** People of all conversations in the window count, also for pairs, which are few. */
export const anonymity: SetGate = {
  name: 'k-anonymity',
  judge: async (order, { crowd, questionOf: question }, { kAnonymity: k }) => {
    const otherwise = `fewer than ${k} people asked the like`;
    if (crowd === null) return { fits: new Uint8Array(order.length).fill(1), otherwise };
    const sizes = await crowd.sizes(order.map(question));
    return { fits: Uint8Array.from(order, (one) => (sizes[question(one)]! >= k ? 1 : 0)), otherwise };
  },
};

/** Of conversations that say the same, the best is kept. */
export const duplicates: SetGate = {
  name: 'duplicates',
  judge: async (order, { drawnOf, compareDrawn }) => {
    const fits = new Uint8Array(order.length).fill(1);
    const places = Uint32Array.from(order, (_, i) => i);
    for (const alike of alikeIn(places, (place) => drawnOf(order[place]!))) {
      const firsts: number[] = [];
      for (const place of alike)
        if (firsts.some((first) => compareDrawn(order[first]!, order[place]!) === 0)) fits[place] = 0;
        else firsts.push(place);
    }
    return { fits, otherwise: 'same question and answer' };
  },
};

export const nearDuplicates: SetGate = {
  name: 'near-duplicates',
  judge: async (order, { wordings }, { nearDuplicate }) => ({
    fits: (await wordings?.firstOfAlike(order, nearDuplicate)) ?? new Uint8Array(order.length).fill(1),
    otherwise: 'nearly the same words',
  }),
};

const shareGate = (
  name: string,
  one: string,
  ownersOf: (of: Waiting) => Owners,
  shareOf: (settings: Settings, order: Uint32Array, owners: Owners) => number,
): SetGate => ({
  name,
  judge: async (order, of, settings) => {
    const owners = ownersOf(of);
    const share = shareOf(settings, order, owners);
    return {
      fits: withinShare(order, owners, share),
      otherwise: `over ${Math.round(share * 1000) / 10}% from ${one}`,
    };
  },
});

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
  ({ maxKeyShare }, order, owners) => attainable(order, owners, maxKeyShare),
);
/** Whoever can import a file needs no key. */
export const sourceShare = shareGate(
  'source share',
  'one source',
  ({ sources }) => sources,
  ({ maxSourceShare }, order, owners) => attainable(order, owners, maxSourceShare),
);
const tenantShare = shareGate(
  'tenant share',
  'one tenant',
  ({ tenants }) => tenants,
  ({ maxTenantShare }, order, owners) => attainable(order, owners, maxTenantShare),
);
const balance = shareGate(
  'balance',
  'one task type',
  ({ taskTypes }) => taskTypes,
  ({ maxTypeShare }, order, owners) => attainable(order, owners, maxTypeShare),
);

export const setGates: readonly SetGate[] = [
  ...[anonymity, duplicates, nearDuplicates],
  ...[userShare, keyShare, sourceShare, tenantShare, balance],
];

export const gateNames = (settings: Settings): string[] =>
  [...seenGates, ...sizedGates, ...wholeGates(settings), ...setGates].map(({ name }) => name);
