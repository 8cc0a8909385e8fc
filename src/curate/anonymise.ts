/**
 * The second look at what is personal, before anything becomes a dataset: what recognizers have learned since it was recorded, and
 * named entities. In what an agent is told (its instructions, its tools) the agent's own names stay, a company's in its own
 * prompt being no leak (own-names.ts); all others are somebody's and are masked as in what was said. A name that is found in either is
 * masked in the other too. Numbers go on where those of the recording ended, and are the same in all
 * threads of a conversation. A thread in which anything was replaced loses its exact tokens, since they spell it out.
 */
import { hash } from 'node:crypto';
import { createRecent } from '../collect/recent.ts';
import { Dropped, type Numbers } from '../collect/redact/placeholder.ts';
import { openRedaction, TooMuchWork } from '../collect/redact/redact.ts';
import type { PiiSettings } from '../collect/redact/settings.ts';
import { openLooks, type ReadOwn } from './looks.ts';
import type { Made, Refused, RowMessage, RowTool, Thread } from './row.ts';

export type Cleaned<T> = { readonly kind: 'clean'; readonly value: T; readonly isChanged: boolean } | Refused;
/** `own`: what the agent was told. Both come back with what is personal replaced. */
export type Clean = <T, S>(own: Own<T>, said: S) => Promise<Cleaned<{ readonly own: Own<T>; readonly said: S }>>;
type Own<T> = { readonly prompts: readonly (string | null)[]; readonly tools: T };

/** Instructions and tools in which nothing personal was found: an agent's are few, and each comes with every conversation. */
const REMEMBERED = 20_000;

/** null: nothing is looked for again; the gate leaves out what today's recognizers find. */
export async function openAnonymiser(pii: PiiSettings | undefined, readOwn: ReadOwn): Promise<Clean | null> {
  if (pii === undefined) return null;
  const looks = await openLooks(pii, readOwn);
  const plain = createRecent<true>(REMEMBERED);
  return async (own, said) => {
    try {
      const ownText = JSON.stringify(own);
      const name = hash('sha256', ownText, 'base64url');
      const numbers = numbersIn(ownText, JSON.stringify(said));
      const told = plain.get(name) ? null : openRedaction({ rules: await looks.told(own), numbers });
      const spoken = openRedaction({ rules: await looks.said(said), numbers });
      const { prompts, tools } = told === null ? own : told.clean(own);
      if (told?.finds.length === 0) plain.set(name, true);
      const words = spoken.clean(said);
      const spread = <T>(value: T): T => (told === null ? value : told.spread(value));
      const value = {
        // Not the tools: what somebody happens to be called may be the name of one.
        own: { prompts: spoken.spread(spread(prompts)), tools: spread(tools) },
        said: spread(spoken.spread(words)),
      };
      return { kind: 'clean', value, isChanged: (told?.finds.length ?? 0) + spoken.finds.length > 0 };
    } catch (error) {
      if (error instanceof Dropped) return { kind: 'refused', reason: `holds ${error.kind}` };
      if (error instanceof TooMuchWork) return { kind: 'refused', reason: 'too large to check' };
      throw error;
    }
  };
}

const mask = /\[([A-Z]{2,12}(?:_[A-Z]{2,12}){0,3})_(\d{1,6})\]/g;
const MOST_NUMBERS = 10_000;

/** The numbers that are taken: whose they were nobody knows any more. */
function numbersIn(...texts: string[]): Numbers {
  const numbers: Numbers = new Map();
  for (const text of texts)
    for (const [, name, digits] of text.matchAll(mask)) {
      const kind = name!.toLowerCase().replaceAll('_', '-');
      const taken = numbers.get(kind) ?? new Map<string, number>();
      numbers.set(kind, taken);
      for (let n = taken.size + 1; n <= Math.min(Number(digits), MOST_NUMBERS); n++) taken.set(`recorded ${n}`, n);
    }
  return numbers;
}

/** What of a message was said, apart from what the protocol needs. */
type Said = { readonly content?: string | null; readonly reasoning?: string; readonly calls?: readonly string[] };
const saidIn = (message: RowMessage): Said =>
  message.role === 'system'
    ? {}
    : {
        content: message.content,
        ...(message.role === 'assistant' && {
          ...(message.reasoning_content !== undefined && { reasoning: message.reasoning_content }),
          ...(message.tool_calls && { calls: message.tool_calls.map((call) => call.function.arguments) }),
        }),
      };

function withSaid<M extends RowMessage>(message: M, { content, reasoning, calls }: Said): M {
  if (message.role === 'system') return message;
  const { tool_calls } = message as { tool_calls?: Extract<RowMessage, { role: 'assistant' }>['tool_calls'] };
  return {
    ...message,
    content,
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(tool_calls &&
      calls && {
        tool_calls: tool_calls.map((call, i) => ({ ...call, function: { ...call.function, arguments: calls[i]! } })),
      }),
  };
}

/** All but its name, by which it is called. */
const toldOf = ({ function: { description, parameters } }: RowTool) => ({ description, parameters });

type Words<M> = {
  readonly messages: readonly M[];
  readonly tools: readonly RowTool[];
  readonly texts: readonly string[];
};

/** Messages, tools and further texts of one conversation, in one go, so that the same value has the same number in all. */
export async function cleanWords<M extends RowMessage>(
  clean: Clean,
  { messages, tools, texts }: Words<M>,
): Promise<Cleaned<Words<M>>> {
  const isOwn = ({ role }: RowMessage) => role === 'system';
  const cleaned = await clean(
    { prompts: messages.map((message) => (isOwn(message) ? message.content : null)), tools: tools.map(toldOf) },
    { messages: messages.map(saidIn), texts },
  );
  if (cleaned.kind === 'refused') return cleaned;
  const { own, said } = cleaned.value;
  return {
    kind: 'clean',
    isChanged: cleaned.isChanged,
    value: {
      messages: messages.map((message, i) =>
        isOwn(message) ? { ...message, content: own.prompts[i]! } : withSaid(message, said.messages[i]!),
      ),
      tools: tools.map((tool, i) => ({ ...tool, function: { ...tool.function, ...own.tools[i]! } })),
      texts: said.texts,
    },
  };
}

export async function anonymiseRow(made: Made, clean: Clean | null): Promise<Made> {
  if (made.kind === 'refused' || clean === null) return made;
  const before = made.row.threads;
  const reasoningIn = ({ answers }: Thread) => answers.map(({ reasoning = '' }) => reasoning);
  const cleaned = await cleanWords(clean, {
    messages: before.flatMap(({ messages }) => messages),
    tools: before.flatMap(({ tools }) => tools),
    texts: before.flatMap(reasoningIn),
  });
  if (cleaned.kind === 'refused') return cleaned;
  if (!cleaned.isChanged) return made;
  const rest = {
    messages: [...cleaned.value.messages],
    tools: [...cleaned.value.tools],
    texts: [...cleaned.value.texts],
  };
  const threads = before.map((thread): Thread => {
    const messages = rest.messages.splice(0, thread.messages.length);
    const tools = rest.tools.splice(0, thread.tools.length);
    const texts = rest.texts.splice(0, thread.answers.length);
    const isSame =
      JSON.stringify([messages, tools, texts]) === JSON.stringify([thread.messages, thread.tools, reasoningIn(thread)]);
    if (isSame) return thread;
    const answers = thread.answers.map(({ exact: _, ...answer }, i) =>
      answer.reasoning === undefined ? answer : { ...answer, reasoning: texts[i]! },
    );
    return { messages, tools, answers };
  });
  return { kind: 'row', row: { ...made.row, threads } };
}
