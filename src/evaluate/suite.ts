/**
 * A suite: what a model is judged by, fixed by content. Two suites with the same hash are the same suite, whatever they are
 * called; a changed line gives another hash, so reports on different ones are never taken for comparable. There are two
 * kinds: tasks of an environment, which are played to their end, and cases, which are one answer each.
 */
import { createHash } from 'node:crypto';
import type { Task } from '../simulate/environment.ts';
import type { Case } from './case.ts';

type Known = {
  readonly name: string;
  readonly hash: string;
  /** Reference of its file, where that was kept. */
  readonly artifact?: string;
  /** What is not in the entries: how they are played otherwise than they are written. */
  readonly variant?: string;
};
export type TaskSuite<Data> = Known & { readonly kind: 'tasks'; readonly tasks: readonly Task<Data>[] };
export type CaseSuite = Known & { readonly kind: 'cases'; readonly cases: readonly Case[] };
export type Suite<Data> = TaskSuite<Data> | CaseSuite;

export function makeSuite<Data>(name: string, tasks: readonly Task<Data>[]): TaskSuite<Data> {
  refuseTwins(name, tasks);
  const trained = tasks.find(({ split }) => split === 'train');
  if (trained)
    throw new Error(
      `Task ${trained.id} of suite ${name} is from the train split; judge by tasks that are not trained on.`,
    );
  return { kind: 'tasks', name, hash: hashOf(tasks), tasks };
}

export function makeCaseSuite(name: string, cases: readonly Case[]): CaseSuite {
  refuseTwins(name, cases);
  return { kind: 'cases', name, hash: hashOf(cases), cases };
}

/** What a report calls them, whichever they are. */
export const entriesOf = (suite: Suite<unknown>): readonly { readonly id: string; readonly type: string }[] =>
  suite.kind === 'tasks' ? suite.tasks : suite.cases;

function refuseTwins(name: string, entries: readonly { readonly id: string }[]): void {
  const seen = new Set<string>();
  for (const { id } of entries) {
    if (seen.has(id)) throw new Error(`Suite ${name} has two tasks with the id ${id}; ids must differ.`);
    seen.add(id);
  }
}

function hashOf(entries: readonly unknown[]): string {
  const hash = createHash('sha256');
  for (const entry of entries) hash.update(JSON.stringify(entry)).update('\n');
  return hash.digest('hex').slice(0, 16);
}
