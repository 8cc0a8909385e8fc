/** What a request says, as chat messages, whichever wire format it came in; undefined where nobody talks. */
import { messagesInChat } from './assemble-messages.ts';
import { responsesInChat } from './assemble-responses.ts';
import type { Turn } from './turn.ts';

export function chatMessages({ endpoint, request }: Pick<Turn, 'endpoint' | 'request'>): unknown {
  switch (endpoint) {
    case 'chat':
      return request.messages;
    case 'responses':
      return responsesInChat(request);
    case 'messages':
      return messagesInChat(request);
    case 'completions':
    case 'embeddings':
      return undefined;
    default:
      endpoint satisfies never;
  }
}
