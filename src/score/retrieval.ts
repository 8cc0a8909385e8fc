/**
 * The last question of a conversation, its answer, and what was retrieved for it: the results of tools that look things up. Which
 * tools those are can be said; otherwise a tool counts whose name reads like it. A result that is JSON is taken apart where it
 * holds a list of passages; any other is one passage. Pure.
 */
import type { Shown } from '../collect/timeline.ts';
import type { Turn } from '../collect/turn.ts';
import { isObject, listOf, parseUntrusted } from '../collect/untrusted.ts';
import { messagesOf } from './transcript.ts';

export type RetrievalOptions = {
  /** Names of the tools that retrieve. Default: those whose names read like search, retrieve, look up, documents, knowledge. */
  readonly tools?: readonly string[];
};

export type Exchange = {
  readonly question: string;
  readonly answer: string;
  readonly contexts: readonly string[];
};

const readsLikeRetrieval =
  /search|retriev|look_?-?up|knowledge|document|passage|wiki|(?:^|[_-])(?:rag|kb|docs|faq)(?:[_-]|$)/i;
const mostContexts = 50;
/** Under which names lists of passages, and the words of one, are found. */
const lists = ['documents', 'results', 'passages', 'chunks', 'contexts', 'hits', 'matches', 'items', 'data'];
const words = ['text', 'content', 'page_content', 'pageContent', 'passage', 'snippet', 'chunk', 'body', 'document'];

export const isRetrieval = (tool: string, { tools }: RetrievalOptions): boolean =>
  tools === undefined ? readsLikeRetrieval.test(tool) : tools.includes(tool);

/** What one result says, passage by passage. */
export function passagesOf(result: string): string[] {
  const value = parseUntrusted(result);
  const list = Array.isArray(value)
    ? value
    : isObject(value)
      ? lists.map((name) => value[name]).find((one) => Array.isArray(one))
      : undefined;
  const passages = list === undefined ? [result] : listOf(list).map(passageOf);
  return passages.map((text) => text.trim()).filter((text) => text !== '');
}

function passageOf(item: unknown): string {
  if (typeof item === 'string') return item;
  if (!isObject(item)) return JSON.stringify(item) ?? '';
  const named = words.map((name) => item[name]).find((one) => typeof one === 'string');
  return (named as string | undefined) ?? JSON.stringify(item);
}

const lastOf = (messages: readonly Shown[], role: string): number =>
  messages.findLastIndex((message) => message.role === role && message.text.trim() !== '');

/** null: nobody asked, or nobody answered in words. */
export function exchangeOf(turns: readonly Turn[], options: RetrievalOptions = {}): Exchange | null {
  const messages = messagesOf(turns);
  const end = lastOf(messages, 'assistant');
  const before = messages.slice(0, Math.max(0, end));
  const asked = lastOf(before, 'user');
  if (end < 0 || asked < 0) return null;
  const contexts = before
    .filter(({ role, toolName }) => role === 'tool' && toolName !== null && isRetrieval(toolName, options))
    .flatMap(({ text }) => passagesOf(text));
  return {
    question: messages[asked]!.text,
    answer: messages[end]!.text,
    contexts: [...new Set(contexts)].slice(-mostContexts),
  };
}
