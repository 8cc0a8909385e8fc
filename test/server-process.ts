/** What tests of servers in processes of their own share: a port for one, and the moment from which it answers. */
import type { ChildProcess } from 'node:child_process';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((go) => server.listen(0, '127.0.0.1', go));
  const { port } = server.address() as { port: number };
  await new Promise((go) => server.close(go));
  return port;
}

/** `name` is what the error calls it where it ends instead; `log` what it had said. */
export async function answering(
  child: ChildProcess,
  address: string,
  { name, log }: { readonly name: string; readonly log: () => string },
): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}:\n${log()}`);
    const answer = await fetch(address).catch(() => null);
    if (answer?.ok) return;
    await sleep(200);
  }
}
