/**
 * Customers who come through the gateway like anybody else's: with user ids and consent, with addresses and card numbers in
 * what they write, with a vote now and then, and an outcome that the shop measures once they have left.
 */

import { makeTasks } from '../../src/simulate/environment.ts';
import { type Episode, play } from '../../src/simulate/episode.ts';
import { httpPlayer } from '../../src/simulate/http-player.ts';
import type { Door, Visits } from '../../src/start.ts';
import { supportDesk } from './desk.ts';
import { type Visit, visit, vote } from './traffic.ts';

/** Production traffic asks what nobody practised on: validation tasks, not training's and not golden ones. */
export async function sendCustomers(door: Door, { prefix, seed, count, signal, onVisit }: Visits) {
  const tasks = makeTasks(supportDesk, 'validation', count, seed);
  const visits = new Map<string, Visit>(tasks.map((task) => [task.id, visit(task, { seed })]));
  const visitors = new Map([...visits.values()].map(({ visitor }) => [visitor.user, visitor.consent]));
  for (const [user, consent] of visitors) if (consent !== 'unknown') await door.consent(user, consent);

  const trajectory = (task: string) => `${prefix}-${task.replace(/[^A-Za-z0-9_.-]/g, '-')}`;
  const player = httpPlayer({
    baseUrl: `${door.url}/t/{trajectory}/v1`,
    model: door.agent,
    key: door.key,
    tokens: true,
    concurrency: 32,
    trajectory: ({ task }) => trajectory(task),
    headers: ({ task }) => ({ 'x-pawl-user': visits.get(task)!.visitor.user }),
    fields: ({ task }) => ({ metadata: { task_type: visits.get(task)!.task.type } }),
  });
  let done = 0;
  let resolved = 0;
  const reports: Promise<void>[] = [];
  const tell = async (route: string, body: object) => {
    const response = await fetch(`${door.url}${route}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${door.key}` },
      body: JSON.stringify(body),
    });
    if (response.status !== 202) throw new Error(`${route} answered ${response.status}: ${await response.text()}`);
  };
  const onEpisode = (episode: Episode) => {
    const about = trajectory(episode.task);
    const said = vote(episode, seed);
    const { user } = visits.get(episode.task)!.visitor;
    if (said !== null) reports.push(tell('/v1/feedback', { trajectory: about, vote: said, user }));
    reports.push(tell('/v1/outcomes', { trajectory: about, name: 'resolved', value: episode.success }));
    if (episode.success) resolved++;
    done++;
    onVisit?.(done);
  };
  const asked = [...visits.values()].map(({ task }) => task);
  try {
    await play(supportDesk, player, asked, { seed, batch: 64, ...(signal ? { signal } : {}), onEpisode });
  } finally {
    // Stopped in the middle, what the shop has begun to report is still reported before anybody closes the door.
    await Promise.allSettled(reports);
  }
  await Promise.all(reports);
  return { conversations: done, resolved };
}
