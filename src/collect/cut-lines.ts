/**
 * The lines of a stream of UTF-8, whoever wrote it: one that never ends does not fill the memory. Of a line that is longer than
 * any reader takes only the beginning is handed on, one character longer than allowed, so that the reader says so. A byte order
 * mark, with which some programs begin a file, is no part of its first line.
 */
import { StringDecoder } from 'node:string_decoder';
import { maxLineBytes } from './conversation.ts';

export async function* cutLines(stream: AsyncIterable<unknown>, most = maxLineBytes): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8');
  let pieces: string[] = [];
  let length = 0;
  let isFirst = true;
  const add = (piece: string) => {
    if (piece === '' || length > most) return;
    const kept = piece.slice(0, most + 1 - length);
    pieces.push(kept);
    length += kept.length;
  };
  const take = (): string => {
    const whole = pieces.join('');
    const line = isFirst && whole.startsWith('\ufeff') ? whole.slice(1) : whole;
    pieces = [];
    length = 0;
    isFirst = false;
    return line.endsWith('\r') ? line.slice(0, -1) : line;
  };
  for await (const chunk of stream) {
    const text = decoder.write(chunk as Buffer);
    let from = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
      add(text.slice(from, end));
      yield take();
      from = end + 1;
    }
    add(text.slice(from));
  }
  add(decoder.end());
  if (length > 0) yield take();
}
