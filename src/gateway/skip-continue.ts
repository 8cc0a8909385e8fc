/**
 * Takes `100 Continue` out of what an upstream sends. A client has to put up with one it never asked for (RFC 9110, 15.2), and
 * some servers send it before every answer; undici ends the connection instead. It skips other 1xx by itself.
 *
 * Only the first bytes after something was written can be such a head, so an answer's body is never looked at.
 */
import type { Socket } from 'node:net';

const begins = /^HTTP\/1\.[01] 100[ \r]/;
const maxHead = 16 * 1024;

/** What follows the 100s at the start; null while that cannot be told yet. */
export function afterContinue(bytes: Buffer): Buffer | null {
  let rest = bytes;
  for (;;) {
    // The tenth byte is the first digit of the status: nearly always a 2.
    if (rest.length > 9 && rest[9] !== 0x31) return rest;
    if (rest.length < 13) return 'HTTP/1.'.startsWith(rest.toString('latin1', 0, 7)) ? null : rest;
    if (!begins.test(rest.toString('latin1', 0, 13))) return rest;
    const end = rest.indexOf('\r\n\r\n');
    if (end < 0) return rest.length > maxHead ? rest : null;
    rest = rest.subarray(end + 4);
  }
}

export function skipContinue(socket: Socket): Socket {
  const { read, write } = socket;
  let isHead = false;
  let held: Buffer | null = null;
  socket.write = function (this: Socket, ...given: unknown[]) {
    isHead = true;
    return write.apply(this, given as Parameters<Socket['write']>);
  } as Socket['write'];
  socket.read = function (this: Socket, size?: number) {
    const chunk = read.call(this, size) as Buffer | null;
    if (!isHead || chunk === null) return chunk;
    const head: Buffer = held === null ? chunk : Buffer.concat([held, chunk]);
    const rest = afterContinue(head);
    held = rest === null ? head : null;
    isHead = rest === null;
    return rest;
  };
  return socket;
}
