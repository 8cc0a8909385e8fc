/**
 * Tool adoption: of the conversations of a kind of task in which tools were offered, the share that used one, and which. It is a
 * metric and no part of a reward: whether a tool was needed, outcomes say (tool-use.ts judges the calls that were made).
 */
import type { Origin } from '../collect/trajectory.ts';
import type { Store } from '../store/postgres.ts';
import { type AdoptionLook, keepAdoptionLook, readAdoption } from '../store/tool-adoption.ts';

export type Adoption = {
  /** The request's `metadata.task_type`; `unknown` without one. */
  readonly taskType: string;
  /** Conversations in which a request offered tools. */
  readonly offered: number;
  /** Of these, those in which one of them was called. */
  readonly used: number;
  /** In how many conversations each was called. */
  readonly tools: readonly { readonly name: string; readonly conversations: number }[];
};

export type AdoptionChange = Adoption & {
  /** In as long a time before; null: no such conversation. */
  readonly before: { readonly offered: number; readonly used: number } | null;
};

type Window = { readonly agent: string; readonly origin: Origin; readonly since: Date; readonly until: Date };

/** Of a window, each kind beside what it was in as long a time before. */
export async function adoptionIn(store: Store, window: Window): Promise<AdoptionChange[]> {
  const { since, until } = window;
  const now = await readAdoption(store, window);
  const earlier = await readAdoption(store, {
    ...window,
    since: new Date(+since - (+until - +since)),
    until: since,
  });
  const before = new Map(earlier.map(({ taskType, offered, used }) => [taskType, { offered, used }]));
  return now.map((one) => ({ ...one, before: before.get(one.taskType) ?? null }));
}

const weekMs = 7 * 86_400_000;

/** Keeps what the last week was like, for whoever scrapes. */
export async function lookAtTools(
  store: Store,
  { agent, origin, now }: Pick<Window, 'agent' | 'origin'> & { readonly now: Date },
): Promise<void> {
  const found = await readAdoption(store, { agent, origin, since: new Date(+now - weekMs), until: now });
  await keepAdoptionLook(store, agent, found.slice(0, 100), now);
}

/** Names of agents and kinds hold nothing that would need escaping; one that does is left out. */
const isPlain = (name: string): boolean => /^[\w.-]+$/.test(name);

export function toolMetrics(looks: readonly AdoptionLook[]): string {
  const known = looks.filter(({ agent, taskType }) => isPlain(agent) && isPlain(taskType));
  if (known.length === 0) return '';
  const lines = (name: string, help: string, value: (one: AdoptionLook) => number) => [
    ...[`# HELP ${name} ${help}`, `# TYPE ${name} gauge`],
    ...known.map((one) => `${name}{agent="${one.agent}",task_type="${one.taskType}"} ${value(one)}`),
  ];
  return `${[
    ...lines('pawl_tools_offered', 'Conversations of the last week that were offered tools', ({ offered }) => offered),
    ...lines('pawl_tools_used', 'Of these, those that used one', ({ used }) => used),
  ].join('\n')}\n`;
}
