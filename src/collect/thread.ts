/**
 * Which trajectory a turn belongs to when the caller did not say: the one whose messages plus answer the new request
 * begins with. Every message is folded into a hash chain, so "begins with" is one map lookup per earlier answer.
 *
 * A point is the end of an answer, waiting to be continued. Conversations that are equal word for word so far reach the same
 * point; each is open there (its answer ended here) until it is continued (a turn that got an answer of its own began here).
 * The longest known prefix decides:
 *   nobody is open   the turn is a branch (an edited message, a regenerated answer further up): a new trajectory;
 *   one was ever here, and is open   the turn joins it, and it is continued;
 *   several were here, of one user   the turn joins the open one whose answer is the most recent: it is the same person;
 *   several were here, of nobody known   two strangers may have said "hi" and got the same answer, and nothing tells which of
 *                    them goes on: a new trajectory, so that one never lands in the other's;
 *   no such point    a new conversation: a new trajectory.
 * A turn without a whole answer (an error, a broken stream) joins but leaves the point open, so the caller's retry lands
 * in the same trajectory. Any of `n` choices may be the one continued.
 *
 * Instructions (system, developer) often hold the time or other things that change from call to call. They are hashed
 * apart: of the longest prefix, the point under the same instructions is meant, and any other only if there is none.
 *
 * What is compared is what clients send back unchanged: role, text, tool calls (arguments as values, since SDKs
 * re-serialise them), tool_call_id. Reasoning, refusal, annotations, names of parts and a leading <think> block are
 * not. The chain starts from a secret, the agent and the user: keys are stored, and must not let anyone guess what was
 * said, nor join two users' conversations. State is bounded; it only needs to outlive a user's pause.
 */
import { hash } from 'node:crypto';
import { type ToolCall, textOf, toolCallsOf } from './message.ts';
import { createRecent } from './recent.ts';
import type { Choice } from './turn.ts';
import { isObject, type JsonObject, parseUntrusted, withSortedKeys } from './untrusted.ts';

/** One stored answer's end, as read back from the database, the journal or the thread that was there before (known-threads.ts). */
export type ThreadPoint = { readonly threadKey: string; readonly trajectory: string; readonly at: number };

export type Threader = {
  /** Decides and remembers. `at` is the time now, `newId` is used when a new trajectory begins. */
  place(turn: ThreadedTurn, at: number, newId: () => string): { trajectory: string; threadKey: string | null };
  /** Points of earlier processes, in any order; of each trajectory only the latest that is known at all is open. */
  seed(points: readonly ThreadPoint[]): void;
  /** Seeds the next of the `older` points; false when there are no more. */
  learn(): boolean;
  size(): number;
};

export type ThreadedTurn = {
  readonly explicit: string | null;
  readonly agent: string;
  readonly user: string | null;
  /** The request's `messages`; anything but a list means the turn cannot be threaded. */
  readonly messages: unknown;
  readonly choices: readonly Choice[];
  /** The answer came to its end; one that broke off leaves the place it continued open. */
  readonly complete: boolean;
};

export type ThreaderOptions = {
  readonly secret: string;
  readonly maxPoints?: number;
  readonly idleMs?: number;
  /**
   * More points to be seeded, a piece at each call, null when there are no more. They are asked for by `learn`, and all at once
   * by the first turn that could continue one of them: whoever starts with many need not read them all before the first turn.
   */
  readonly older?: () => readonly ThreadPoint[] | null;
};

type Reached = { readonly trajectory: string; at: number; open: boolean };
type Point = { reached: Reached[]; at: number };
/** Equal conversations remembered under one key; of more than this many the oldest is forgotten. */
const MAX_EQUAL = 64;

export function createThreader(options: ThreaderOptions): Threader {
  const idleMs = options.idleMs ?? 60 * 60 * 1000;
  const maxPoints = options.maxPoints ?? 40_000;
  const points = createRecent<Point>(maxPoints);
  /** Where each trajectory is: what a seed says of an earlier point is old news. */
  const latest = createRecent<{ readonly threadKey: string; readonly at: number }>(maxPoints);
  let agedAt = 0;
  let older = options.older ?? null;

  /** `known`: the trajectory may have reached this point already. */
  function reach(key: string, { trajectory, at, open }: Reached, known: boolean): void {
    const point = points.get(key);
    if (point === undefined) {
      points.set(key, { reached: [{ trajectory, at, open }], at }); // a list that is made full takes a tenth of one that grows
      return;
    }
    points.set(key, point);
    point.at = Math.max(point.at, at);
    const before = known ? point.reached.find((one) => one.trajectory === trajectory) : undefined;
    if (before !== undefined) {
      before.at = Math.max(before.at, at);
      before.open = open;
      return;
    }
    point.reached.push({ trajectory, at, open });
    if (point.reached.length > MAX_EQUAL) point.reached.shift();
  }

  function seed(seeds: readonly ThreadPoint[]): void {
    for (const { threadKey, trajectory, at } of seeds) {
      const known = latest.get(trajectory);
      if (known === undefined || at >= known.at) {
        if (known !== undefined && known.threadKey !== threadKey)
          for (const key of known.threadKey.split('.')) close(key, trajectory);
        latest.set(trajectory, { threadKey, at });
      }
      const open = latest.get(trajectory)?.threadKey === threadKey;
      for (const key of threadKey.split('.')) reach(key, { trajectory, at, open }, true);
    }
  }

  function close(key: string, trajectory: string): void {
    for (const one of points.get(key)?.reached ?? []) if (one.trajectory === trajectory) one.open = false;
  }

  /** What a chain starts from: JSON of secret, agent and user. */
  const beginnings = createRecent<string>(1000);
  function beginning(agent: string, user: string | null): string {
    let first = beginnings.get(agent);
    if (first === undefined) {
      first = JSON.stringify([options.secret, agent]).slice(0, -1);
      beginnings.set(agent, first);
    }
    return `${first},${user === null ? 'null' : JSON.stringify(user)}]`;
  }

  function learn(): boolean {
    const piece = older?.() ?? null;
    if (piece === null) older = null;
    else seed(piece);
    return piece !== null;
  }

  return {
    place(turn, at, newId) {
      if (at - agedAt > idleMs) {
        points.age();
        latest.age();
        agedAt = at;
      }
      if (!Array.isArray(turn.messages) || turn.messages.length === 0) {
        return { trajectory: turn.explicit ?? newId(), threadKey: null };
      }
      if (older !== null && turn.explicit === null && turn.messages.some(isAnswer)) while (learn());
      let link = beginning(turn.agent, turn.user);
      let between: unknown[] = []; // said since, folded into the next link at an answer
      let instructions = noInstructions;
      const ends: { readonly link: string; readonly system: string }[] = []; // of the answers: only those can be points
      for (const message of turn.messages) {
        if (isInstruction(message)) instructions = instructedBy(instructions, message);
        else if (isAnswer(message)) {
          link = knownLinkOf(link, between, message);
          between = [];
          ends.push({ link, system: instructions.system });
        } else between.push(message);
      }
      let found: Point[] = []; // the point under the same instructions first, if there is one
      // From the end: the first match is the longest. Most ends are no points, and those are known by one name alone.
      for (let i = ends.length - 1; i >= 0 && found.length === 0; i--)
        if (points.get(ends[i]!.link) !== undefined)
          found = threadKeys(ends[i]!.link, ends[i]!.system)
            .map((key) => points.get(key))
            .filter((point) => point !== undefined && at - point.at <= idleMs) as Point[];
      const joined = turn.explicit ?? continuedBy(turn.user, found[0]?.reached ?? []);
      const trajectory = joined ?? newId();
      const { system } = instructions;
      const said = folded(between.reduce<string>((all, message) => all + normalise(message), link)); // once: the choices may be many
      const keys = turn.choices.map((choice) => threadKeys(linkOf(said, choice.message), system));
      const threadKey = keys[0]?.join('.') ?? null;
      if (threadKey !== null && turn.complete) {
        if (joined !== undefined)
          for (const { reached } of found)
            for (const one of reached) if (one.trajectory === trajectory) one.open = false;
        latest.set(trajectory, { threadKey, at });
      }
      for (const key of new Set(keys.flat())) reach(key, { trajectory, at, open: true }, joined !== undefined);
      return { trajectory, threadKey };
    },
    seed,
    learn,
    size: points.size,
  };
}

/** Which of the conversations that reached a point goes on with this turn; undefined: none, or nobody can tell. */
function continuedBy(user: string | null, reached: readonly Reached[]): string | undefined {
  if (user === null && reached.length > 1) return undefined;
  let newest: Reached | undefined;
  for (const one of reached) if (one.open && (newest === undefined || one.at >= newest.at)) newest = one;
  return newest?.trajectory;
}

/** Two names of one point: with the instructions it was reached under, and without (the same if there were none). */
function threadKeys(link: string, system: string): string[] {
  return system === '' ? [link] : [digest(link + system), link];
}

/** The link of an answer to what was said before it. */
const linkOf = (said: string, answer: unknown): string => digest(folded(said) + normalise(answer));

type KnownLink = {
  readonly before: string;
  readonly between: readonly unknown[];
  readonly answer: unknown;
  readonly link: string;
};
/**
 * Of an answer, by what was said last before it. A conversation that goes on begins with the objects that it had before
 * (redact/known-messages.ts), so that only what is new in it is hashed.
 */
const knownLinks = new WeakMap<object, KnownLink>();

function knownLinkOf(before: string, between: readonly unknown[], answer: JsonObject): string {
  const last = between.at(-1);
  const key = isObject(last) ? last : answer;
  const known = knownLinks.get(key);
  if (known !== undefined && known.answer === answer && known.before === before && isSame(known.between, between))
    return known.link;
  const link = linkOf(
    between.reduce<string>((all, message) => all + normalise(message), before),
    answer,
  );
  knownLinks.set(key, { before, between, answer, link });
  return link;
}

const isSame = (some: readonly unknown[], others: readonly unknown[]): boolean =>
  some.length === others.length && some.every((one, i) => one === others[i]);

const LONG = 2048;
const folded = (said: string): string => (said.length < LONG ? said : digest(said));

const isAnswer = (message: unknown): message is JsonObject => isObject(message) && message.role === 'assistant';

function isInstruction(message: unknown): message is JsonObject {
  return isObject(message) && (message.role === 'system' || message.role === 'developer');
}

/** `said`: all of them so far, folded; `system`: their part of a point's name, '' for a conversation that has none. */
type Instructions = { readonly said: string; readonly system: string };
const noInstructions: Instructions = { said: '', system: '' };
/** Most conversations have one, the agent's, and it is the same object each time (redact/known-messages.ts). */
const firstInstructions = new WeakMap<object, Instructions>();

function instructedBy(before: Instructions, message: object): Instructions {
  const known = before === noInstructions ? firstInstructions.get(message) : undefined;
  if (known !== undefined) return known;
  const said = digest(before.said + normalise(message));
  const instructions = { said, system: digest(said) };
  if (before === noInstructions) firstInstructions.set(message, instructions);
  return instructions;
}

function digest(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, 22); // 128 bits
}

/** A message as one string; equal strings mean the client would consider the messages the same. */
export function normalise(message: unknown): string {
  if (!isObject(message)) return JSON.stringify(message) ?? 'null';
  const role = message.role;
  let text = textOf(message.content, ({ value }) => JSON.stringify(value)); // images and files count as they are
  if (role === 'assistant') text = withoutThinking(text);
  text = text.trim();
  const calls = toolCallsOf(message).map(normaliseCall);
  const answered = message.tool_call_id ?? null;
  // Most messages are words alone: lengths say where they end, so they need no quoting.
  return calls.length === 0 && answered === null && typeof role === 'string'
    ? `${role.length}:${role}${text.length}:${text}`
    : JSON.stringify([role, text, calls, answered]);
}

function withoutThinking(text: string): string {
  const start = text.trimStart();
  if (!start.startsWith('<think>')) return text;
  const end = start.indexOf('</think>');
  return end < 0 ? text : start.slice(end + '</think>'.length);
}

function normaliseCall({ id, name, arguments: said }: ToolCall): unknown {
  const given = said ?? '';
  const parsed = typeof given === 'string' ? parseUntrusted(given) : given;
  return [id, name, parsed === undefined ? given : withSortedKeys(parsed)];
}
