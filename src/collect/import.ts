/**
 * Reads a file of conversations into the database: each becomes turns and signals as if it had come through the gateway, fitted,
 * bounded and redacted by the same functions and written exactly once by the same statement. The file is its own journal: what is
 * interrupted is begun again, and finds what it had written. A line that is no conversation is counted and named, and the rest
 * goes on.
 */
import { setImmediate as pause } from 'node:timers/promises';
import { type Line, lineOf } from '../store/line.ts';
import type { Store } from '../store/postgres.ts';
import { writeLines } from '../store/record.ts';
import { firstStarts } from '../store/trajectories.ts';
import { BadLine, type Conversation, type ConversationContext, readConversation } from './conversation.ts';
import { makeSignal, makeTurn } from './make-turn.ts';
import { readableId } from './person.ts';
import { openAgentRules } from './redact/agent-rules.ts';
import type { PiiOfAgents } from './redact/settings.ts';
import { createSentMessages } from './sent-messages.ts';
import type { Signal } from './signal.ts';
import { createThreader } from './thread.ts';
import { exchangeOf, type TurnInput } from './turn-input.ts';

export type ImportCounts = {
  readonly lines: number;
  readonly conversations: number;
  /** Written now. */
  readonly turns: number;
  readonly signals: number;
  /** Turns and signals that were there before. */
  readonly known: number;
  /** Pieces of personal data that were replaced. */
  readonly redactions: number;
  /** Lines that are no conversation, and what the database would not take. */
  readonly bad: number;
  /** The first of them: which line, and why. */
  readonly problems: readonly { readonly line: number; readonly reason: string }[];
};

const maxProblems = 20;
/** Conversations, and characters of their lines, that are written together. */
const together = { conversations: 50, characters: 8 * 1024 * 1024 };

export type ImportOptions = ConversationContext & {
  readonly lines: AsyncIterable<string> | Iterable<string>;
  readonly now: Date;
  /** What is personal for the installation and its agents; without it, what always is. */
  readonly pii?: PiiOfAgents;
  readonly signal?: AbortSignal;
  readonly onProgress?: (counts: ImportCounts) => void;
};

export async function importConversations(store: Store, options: ImportOptions): Promise<ImportCounts> {
  const counts = { lines: 0, conversations: 0, turns: 0, signals: 0, known: 0, redactions: 0, bad: 0 };
  const problems: { line: number; reason: string }[] = [];
  const complain = (line: number, reason: string) => {
    counts.bad++;
    if (problems.length < maxProblems) problems.push({ line, reason });
  };
  const writer = await openWriter(store, options);
  let batch: { readonly line: number; readonly conversation: Conversation }[] = [];
  let characters = 0;
  const flush = async () => {
    const done = await writer.write(batch, complain);
    counts.conversations += batch.length;
    counts.turns += done.turns;
    counts.signals += done.signals;
    counts.known += done.known;
    counts.redactions += done.redactions;
    batch = [];
    characters = 0;
    options.onProgress?.({ ...counts, problems });
    options.signal?.throwIfAborted();
  };
  for await (const text of options.lines) {
    counts.lines++;
    if (text.trim() === '') continue;
    try {
      batch.push({ line: counts.lines, conversation: readConversation(text, options) });
      characters += text.length;
    } catch (error) {
      if (!(error instanceof BadLine)) throw error;
      complain(counts.lines, error.message);
    }
    if (batch.length >= together.conversations || characters >= together.characters) await flush();
  }
  await flush();
  return { ...counts, problems };
}

/** What is written, and the line of the file that it came from. */
type Ready = Line & { readonly from: number };

/** Turns one batch after the other into what is written. */
async function openWriter(store: Store, { agent, secret, now, pii }: ImportOptions) {
  const rules = (await openAgentRules(pii ?? null, secret)).of(agent);
  const sent = createSentMessages(secret);
  const threader = createThreader({ secret });
  const newId = () => {
    throw new Error('An imported conversation has an id of its own.');
  };

  const lineOfTurn = (input: TurnInput) => {
    const { turn } = makeTurn(exchangeOf(input), { threader, secret, now: now.getTime(), newId, ...rules });
    const naming = sent.naming(turn, performance.now());
    const redactions = Object.values(turn.redactions).reduce((sum, n) => sum + n, 0);
    return { ...lineOf({ kind: 'turn', turn }, naming), acknowledged: naming.acknowledged, redactions };
  };
  const lineOfSignal = (signal: Signal) => lineOf({ kind: 'signal', signal: makeSignal(signal, secret, rules).signal });

  async function write(
    batch: readonly { readonly line: number; readonly conversation: Conversation }[],
    complain: (line: number, reason: string) => void,
  ) {
    const done = { turns: 0, signals: 0, known: 0, redactions: 0 };
    if (batch.length === 0) return done;
    // One that says no time began when it was first imported, however often it comes.
    const undated = batch.filter(({ conversation }) => conversation.at === null);
    const idOf = ({ trajectory }: Conversation) => readableId(trajectory, secret);
    const begun = await firstStarts(
      store,
      agent,
      undated.map(({ conversation }) => idOf(conversation)),
    );
    const turns: (Ready & { acknowledged(): void })[] = [];
    const signals: Ready[] = [];
    for (const { line: from, conversation } of batch) {
      const at = conversation.at ?? begun.get(idOf(conversation)) ?? now.getTime();
      const { turns: said, signals: heard } = conversation.entries(at);
      for (const input of said) {
        const made = lineOfTurn(input);
        done.redactions += made.redactions;
        turns.push({ ...made, from });
      }
      for (const signal of heard) signals.push({ ...lineOfSignal(signal), from });
      await pause(); // others are served from the same thread
    }
    const written = await writeLines(store, turns);
    for (const one of turns) one.acknowledged();
    const heard = await writeLines(store, signals);
    for (const { line, error } of [...written.refused, ...heard.refused]) complain(line.from, error.slice(0, 300));
    done.turns = written.inserted;
    done.signals = heard.inserted;
    done.known = written.duplicates + heard.duplicates;
    return done;
  }
  return { write };
}
