/**
 * The slow and lying answers of upstream.ts: what servers, proxies and load balancers in between have been seen to send.
 *
 *   slow-N            answers as echo after N milliseconds
 *   lie-longer        states more bytes than it sends, then closes
 *   lie-shorter       states fewer bytes than it sends
 *   lie-json          200, application/json, and no JSON
 *   lie-error         200 with an error for a body
 *   lie-empty         200 with nothing at all
 *   lie-sse           an event stream of broken events, bytes that are no UTF-8, and no end mark
 *   lie-type          says event stream, sends one JSON document
 *   lie-gzip          compressed although nobody asked for it
 *   lie-early         sends 100 Continue first
 *   lie-reset         resets the connection after half the answer
 */
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';

export const lies = [
  'lie-longer',
  'lie-shorter',
  'lie-json',
  'lie-error',
  'lie-empty',
  'lie-sse',
  'lie-type',
  'lie-gzip',
  'lie-early',
  'lie-reset',
] as const;
type Lie = (typeof lies)[number];

export const delayOf = (model: string): number => Number(/^slow-(\d+)$/.exec(model)?.[1] ?? 0);

const document = JSON.stringify({
  id: 'chatcmpl-lie',
  object: 'chat.completion',
  created: 1_760_000_000,
  model: 'lie',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Nearly true.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
});

const tell: Record<Lie, (response: ServerResponse) => void> = {
  'lie-longer': (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': document.length + 100 });
    response.write(document);
    setTimeout(() => response.destroy(), 20);
  },
  'lie-shorter': (response) => {
    // Written past node:http, which would not send more than it stated.
    const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${document.length - 40}\r\n\r\n`;
    response.socket?.end(head + document);
  },
  'lie-json': (response) => json(response, '{"id": "chatcmpl-lie", "choices": [{"index": 0, '),
  'lie-error': (response) =>
    json(response, '{"error":{"message":"Out of memory.","type":"server_error","param":null,"code":null}}'),
  'lie-empty': (response) => json(response, ''),
  'lie-sse': (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: {"choices": [{"index": "first", "delta": 7}]}\n\ndata: {half\n\n: comment\nevent: \n\n');
    response.write(Buffer.from([0x64, 0x61, 0x74, 0x61, 0x3a, 0x20, 0xff, 0xfe, 0x0a, 0x0a]));
    response.end('data: {"choices":[{"index":0,"delta":{"content":"then nothing"}}]}');
  },
  'lie-type': (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(document);
  },
  'lie-gzip': (response) => {
    const bytes = gzipSync(document);
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-encoding': 'gzip',
      'content-length': bytes.length,
    });
    response.end(bytes);
  },
  'lie-early': (response) => {
    response.writeContinue();
    json(response, document);
  },
  'lie-reset': (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': document.length });
    response.write(document.slice(0, 40), () => response.socket?.resetAndDestroy());
  },
};

function json(response: ServerResponse, text: string): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

/** False when the model's name asks for no lie. */
export function lie(model: string, response: ServerResponse): boolean {
  if (!(model in tell)) return false;
  tell[model as Lie](response);
  return true;
}
