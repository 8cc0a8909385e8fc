/**
 * A suite: the tasks a model is judged by, fixed by content. Two suites with the same hash are the same suite, whatever they
 * are called; a changed task gives another hash, so reports on different tasks are never taken for comparable.
 */
import { createHash } from 'node:crypto';
import type { Task } from '../simulate/environment.ts';

export type Suite<Data> = { readonly name: string; readonly hash: string; readonly tasks: readonly Task<Data>[] };

export function makeSuite<Data>(name: string, tasks: readonly Task<Data>[]): Suite<Data> {
  const seen = new Set<string>();
  for (const { id } of tasks) {
    if (seen.has(id)) throw new Error(`Suite ${name} has two tasks with the id ${id}; ids must differ.`);
    seen.add(id);
  }
  const trained = tasks.find(({ split }) => split === 'train');
  if (trained)
    throw new Error(
      `Task ${trained.id} of suite ${name} is from the train split; judge by tasks that are not trained on.`,
    );
  const hash = createHash('sha256');
  for (const task of tasks) hash.update(JSON.stringify(task)).update('\n');
  return { name, hash: hash.digest('hex').slice(0, 16), tasks };
}
