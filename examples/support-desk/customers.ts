/**
 * Customers who come through the gateway like anybody else's: with user ids and consent, with addresses and card numbers in
 * what they write, with a vote now and then, and an outcome that the shop measures once they have left.
 */
import { type Episode, httpPlayer, makeTasks, play } from 'pawl';
import type { PawlApi } from './api.ts';
import { supportDesk } from './desk.ts';
import { type Visit, visit, vote } from './traffic.ts';

export type Visits = {
  /** Trajectory ids begin with this. */
  readonly prefix: string;
  readonly seed: number;
  readonly count: number;
  /** How many different customers they are drawn from; 200 unless told. */
  readonly customers?: number;
  readonly signal?: AbortSignal;
  readonly onVisit?: (done: number) => void;
};

/** The agent as its customers reach it. */
export type Desk = {
  readonly api: PawlApi;
  /** A client key whose traffic counts as simulation. */
  readonly key: string;
  readonly agent: string;
};

/** Customers ask what nobody practised on: validation tasks, not training's and not golden ones. */
export async function sendCustomers({ api, key, agent }: Desk, visits: Visits): Promise<{ resolved: number }> {
  const { prefix, seed, count, customers, signal, onVisit } = visits;
  const tasks = makeTasks(supportDesk, 'validation', count, seed);
  const byTask = new Map<string, Visit>(tasks.map((task) => [task.id, visit(task, { seed, customers })]));
  const visitors = new Map([...byTask.values()].map(({ visitor }) => [visitor.user, visitor.consent]));
  for (const [user, consent] of visitors)
    if (consent !== 'unknown')
      await api(consent === 'given' ? 'PUT' : 'DELETE', `/api/consent/${user}?agent=${agent}`, undefined, signal);

  const trajectory = (task: string) => `${prefix}-${task.replace(/[^A-Za-z0-9_.-]/g, '-')}`;
  const player = httpPlayer({
    baseUrl: `${api.url}/t/{trajectory}/v1`,
    model: agent,
    key,
    tokens: true,
    concurrency: 32,
    trajectory: ({ task }) => trajectory(task),
    headers: ({ task }) => ({ 'x-pawl-user': byTask.get(task)!.visitor.user }),
    fields: ({ task }) => ({ metadata: { task_type: byTask.get(task)!.task.type } }),
  });
  let done = 0;
  let resolved = 0;
  const reports: Promise<unknown>[] = [];
  const tell = async (route: string, body: object) => {
    const response = await fetch(`${api.url}${route}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(60_000),
    });
    if (response.status !== 202) throw new Error(`${route} answered ${response.status}: ${await response.text()}`);
  };
  const onEpisode = (episode: Episode) => {
    const about = trajectory(episode.task);
    const said = vote(episode, seed);
    const { user } = byTask.get(episode.task)!.visitor;
    if (said !== null) reports.push(tell('/v1/feedback', { trajectory: about, vote: said, user }));
    reports.push(tell('/v1/outcomes', { trajectory: about, name: 'resolved', value: episode.success }));
    if (episode.success) resolved++;
    done++;
    onVisit?.(done);
  };
  const asked = [...byTask.values()].map(({ task }) => task);
  try {
    await play(supportDesk, player, asked, { seed, batch: 64, ...(signal ? { signal } : {}), onEpisode });
  } finally {
    // Stopped in the middle, what the shop has begun to report is still reported before anybody closes the door.
    await Promise.allSettled(reports);
  }
  await Promise.all(reports);
  return { resolved };
}
