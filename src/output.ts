/**
 * Lines to standard output or error of a process that must go on whatever becomes of its reader. Nothing here waits and
 * nothing throws: a reader that stopped, a closed pipe, a full disk cost lines, which are counted, and never an answer.
 *
 * A descriptor is shared with whoever started us, and making that one non-blocking would change it for them too. So it is
 * opened once more where the system can do that (files, pipes and terminals on Linux). Sockets (systemd, a parent in
 * Node) cannot be opened again; libuv writes to those without waiting. Not a thread of its own: one that hangs in a write
 * would keep the process from ending.
 */
import { constants, fstatSync, openSync, statSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';

export type Output = {
  /** One line, with its end. */
  write(line: string): void;
  /** Lines that nobody will read: no room left, or the write failed. */
  readonly lost: number;
};

/** What may wait for a reader that is slow. */
const maxWaiting = 1024 * 1024;
const retryMs = 100;

export function openOutput(descriptor: 1 | 2): Output {
  const again = reopened(descriptor);
  if (again !== null) return new FileOutput(again);
  return isStream(descriptor) ? new SocketOutput(descriptor) : new FileOutput(descriptor);
}

function reopened(descriptor: number): number | null {
  if (process.platform !== 'linux') return null; // elsewhere /dev/fd gives the same open file, flags included
  const { O_WRONLY, O_APPEND, O_NONBLOCK, O_NOCTTY } = constants;
  try {
    return openSync(`/proc/self/fd/${descriptor}`, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY);
  } catch {
    return null; // a socket, or a file of another user
  }
}

function isStream(descriptor: number): boolean {
  try {
    const stat = fstatSync(descriptor);
    // Node 20's realpathSync looks at what was asked about last: after a socket it would not follow links to packages any more.
    statSync('/');
    return stat.isFIFO() || stat.isSocket();
  } catch {
    return false; // closed: every write will say so
  }
}

class FileOutput implements Output {
  lost = 0;
  readonly #descriptor: number;
  #waiting: Buffer[] = [];
  #bytes = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#bytes + bytes.length > maxWaiting) {
      this.lost++;
      return;
    }
    this.#waiting.push(bytes);
    this.#bytes += bytes.length;
    if (this.#timer === null) this.#flush();
  }

  #flush(): void {
    this.#timer = null;
    while (this.#waiting.length > 0) {
      const line = this.#waiting[0]!;
      let written: number;
      try {
        written = writeSync(this.#descriptor, line);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EAGAIN') {
          this.#timer = setTimeout(() => this.#flush(), retryMs).unref();
          return;
        }
        this.lost++;
        written = line.length;
      }
      this.#bytes -= written;
      if (written < line.length) this.#waiting[0] = line.subarray(written);
      else this.#waiting.shift();
    }
  }
}

class SocketOutput implements Output {
  lost = 0;
  readonly #socket: Socket;

  constructor(descriptor: number) {
    this.#socket = new Socket({ fd: descriptor, readable: false, writable: true });
    this.#socket.on('error', () => {});
    this.#socket.unref();
  }

  write(line: string): void {
    if (this.#socket.destroyed || this.#socket.writableLength + line.length > maxWaiting) this.lost++;
    else
      this.#socket.write(line, (error) => {
        if (error) this.lost++;
      });
  }
}
