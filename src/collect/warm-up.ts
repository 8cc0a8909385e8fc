/**
 * Makes a turn of an invented exchange and throws it away. The first turn of a thread takes a hundred times as long as the next
 * (patterns are compiled, code is read for the first time), and a thread that takes another's place has exchanges waiting.
 */

import { encodeLine } from '../store/line.ts';
import type { Exchange } from './exchange.ts';
import { makeTurn } from './make-turn.ts';
import { createThreader } from './thread.ts';

const bytes = (value: object) => Buffer.from(JSON.stringify(value));

const invented: Exchange = {
  id: '00000000-0000-7000-8000-000000000000',
  trajectory: null,
  agent: 'agent',
  user: 'user',
  origin: 'production',
  keys: ['order-1'],
  endpoint: 'chat',
  startedAt: 0,
  firstTokenMs: 0,
  latencyMs: 0,
  upstream: 'upstream',
  release: 'release',
  requestedModel: 'model',
  status: 'ok',
  httpStatus: 200,
  error: null,
  attempts: 1,
  stream: false,
  requestBody: bytes({
    model: 'model',
    messages: [{ role: 'user', content: 'Order 4821 of 2026-01-31, ann@example.com?' }],
  }),
  responseChunks: [
    bytes({
      choices: [{ index: 0, message: { role: 'assistant', content: 'It is on its way.' }, finish_reason: 'stop' }],
    }),
  ],
  responseTruncated: false,
};

export function warmUp(): void {
  const context = { threader: createThreader({ secret: '' }), secret: '', now: 0, newId: () => invented.id };
  encodeLine({ kind: 'turn', turn: makeTurn(invented, context).turn });
}
