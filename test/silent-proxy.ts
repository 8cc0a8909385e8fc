/**
 * A TCP proxy in front of a server that can fall silent the way a firewall does: `silence()` freezes the connections that
 * exist (they stay open, nothing is forwarded in either direction) while new ones work. `resume()` lets frozen bytes on,
 * `cut()` resets every connection.
 */
import { createServer, connect as dial, type Socket } from 'node:net';

export type SilentProxy = {
  readonly port: number;
  silence(): void;
  resume(): void;
  cut(): void;
  close(): Promise<void>;
};

type Pair = { readonly near: Socket; readonly far: Socket; silent: boolean };

export async function startProxy(target: { readonly host?: string; readonly port: number }): Promise<SilentProxy> {
  const pairs = new Set<Pair>();
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = dial({ host: target.host ?? '127.0.0.1', port: target.port, allowHalfOpen: true });
    const pair: Pair = { near, far, silent: false };
    pairs.add(pair);
    const forward = (from: Socket, to: Socket) => {
      from.setNoDelay(true);
      from.on('data', (bytes) => {
        if (!to.write(bytes)) from.pause();
      });
      to.on('drain', () => {
        if (!pair.silent) from.resume();
      });
      from.on('end', () => to.end());
      from.on('error', () => to.destroy());
      from.on('close', () => {
        pairs.delete(pair);
        // A silent line does not tell the other side that this one has gone.
        if (!pair.silent) to.destroy();
      });
    };
    forward(near, far);
    forward(far, near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const reset = () => {
    for (const { near, far } of pairs) {
      near.resetAndDestroy();
      far.resetAndDestroy();
    }
    pairs.clear();
  };
  return {
    port: (server.address() as { port: number }).port,
    silence() {
      for (const pair of pairs) {
        pair.silent = true;
        pair.near.pause();
        pair.far.pause();
      }
    },
    resume() {
      for (const pair of pairs) {
        pair.silent = false;
        pair.near.resume();
        pair.far.resume();
      }
    },
    cut: reset,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      reset();
      await closed;
    },
  };
}

/** The same address, reached through the proxy. */
export function through(url: string, { port }: SilentProxy): string {
  const address = new URL(url);
  address.hostname = '127.0.0.1';
  address.port = String(port);
  return address.href;
}
