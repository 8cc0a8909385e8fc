/** What the user of a conversation wrote first, by language and length: what slices of users are told by (slice.ts). */
import { chatMessages } from '../collect/chat-form.ts';
import { readMessage } from '../collect/message.ts';
import type { Turn } from '../collect/turn.ts';
import { listOf } from '../collect/untrusted.ts';
import { languageOf } from '../score/detect-language.ts';
import { type FirstWords, noteFirstWords } from '../store/first-words.ts';
import { readSaid, type Said, type Window } from '../store/measures.ts';
import type { Store } from '../store/postgres.ts';

export function firstWordsOf(turn: Turn): FirstWords {
  const text = userText(turn).trim();
  return { language: languageOf(text), chars: text.length };
}

function userText(turn: Turn): string {
  const { prompt } = turn.request;
  if (turn.endpoint === 'completions') return typeof prompt === 'string' ? prompt : '';
  return listOf(chatMessages(turn))
    .map(readMessage)
    .flatMap(({ role, parts }) => (role === 'user' ? parts.map(({ text }) => text ?? '') : []))
    .join('\n');
}

/** What users of a release got, by every slice there is. */
export async function readServed(store: Store, window: Window, outcome: string | null): Promise<Said> {
  if (outcome !== null) await noteFirstWords(store, window, firstWordsOf);
  return readSaid(store, window, outcome);
}
