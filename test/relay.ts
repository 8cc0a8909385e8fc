/** A way to a TCP server that can be taken away: `away` refuses, `silent` accepts and says nothing, `up` passes on. */
import { connect, createServer, type Server, type Socket } from 'node:net';

export type Relay = {
  readonly port: number;
  become(state: 'up' | 'silent' | 'away'): Promise<void>;
};

export async function startRelay(target: { readonly host: string; readonly port: number }): Promise<Relay> {
  const sockets = new Set<Socket>();
  let server: Server | null = null;
  let port = 0;
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    return socket;
  };
  const end = async () => {
    const last = server;
    server = null;
    for (const socket of sockets) socket.destroy();
    if (last !== null) await new Promise<void>((resolve) => last.close(() => resolve()));
  };
  const begin = async (passOn: boolean) => {
    const next = createServer((socket) => {
      keep(socket);
      if (!passOn) return;
      const onward = keep(connect(target));
      socket.pipe(onward).pipe(socket);
      socket.on('close', () => onward.destroy());
      onward.on('close', () => socket.destroy());
    });
    await new Promise<void>((resolve) => next.listen(port, '127.0.0.1', resolve));
    port = (next.address() as { port: number }).port;
    server = next;
  };
  await begin(true);
  return {
    port,
    async become(state) {
      await end();
      if (state !== 'away') await begin(state === 'up');
    },
  };
}
