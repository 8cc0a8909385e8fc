/**
 * Runs are begun and resumed where there is an engine to train with. An API that has none asks the workers of its database, one after the
 * other, until one takes the run; a worker opens these two doors of the API and no others.
 */
import { hostname } from 'node:os';
import { failure } from '../api/declare.ts';
import type { Store } from '../store/postgres.ts';
import { listProcesses, type ProcessRecord } from '../store/processes.ts';
import { isReachable } from './presence.ts';

export const isTrainingDoor = (method: string | undefined, path: string): boolean =>
  method === 'POST' && /^\/api\/runs(\/[^/]{1,256}\/resume)?$/.test(path);

/** Addresses of workers that a process on `host` reaches, those of the same machine first. */
export const workersFor = (host: string, processes: readonly ProcessRecord[]): string[] =>
  processes
    .filter((one) => one.roles.includes('worker') && isReachable(host, one))
    .toSorted((a, b) => Number(b.host === host) - Number(a.host === host))
    .map(({ address }) => address!);

const waitMs = 60_000;

export async function askWorkers(store: Store, request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const body = await request.arrayBuffer();
  const headers = { 'content-type': 'application/json', authorization: request.headers.get('authorization') ?? '' };
  let last: Response | null = null;
  for (const address of workersFor(hostname(), await listProcesses(store.pool))) {
    const signal = AbortSignal.timeout(waitMs);
    const answer = await fetch(`${address}${pathname}`, { method: 'POST', headers, body, signal }).catch(() => null);
    if (answer === null) continue;
    last = new Response(await answer.arrayBuffer(), {
      status: answer.status,
      headers: { 'content-type': 'application/json' },
    });
    if (answer.status !== 409) break; // a worker that is at another run leaves it to the next
  }
  return (
    last ??
    Response.json(
      failure(
        'no_worker',
        'No worker of this database can be reached from here: start `pawl worker`, or set `address` in its settings to where this machine reaches it.',
      ),
      { status: 503, headers: { 'retry-after': '5' } },
    )
  );
}
