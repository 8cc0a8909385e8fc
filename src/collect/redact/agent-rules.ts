/**
 * The rules of each agent as the recorder needs them: made when the agent's first turn comes, with a memory of what was redacted under
 * them and of the numbers that the values of recent conversations have. Agents that say nothing share one.
 */
import { createRecent } from '../recent.ts';
import { createKnownMessages, type KnownMessages } from './known-messages.ts';
import type { Numbers } from './placeholder.ts';
import type { Redactor } from './redactor.ts';
import { createRules, type Rules } from './rules.ts';
import type { PiiOfAgents, PiiSettings } from './settings.ts';

export type AgentRules = {
  readonly rules: Rules;
  readonly known: KnownMessages;
  readonly numbersOf: (trajectory: string) => Numbers;
};

/** Conversations whose numbers are remembered. One that is forgotten is numbered anew, in the same order as before. */
const CONVERSATIONS = 20_000;

const usesEntities = (pii: PiiOfAgents | null): boolean =>
  pii !== null && [pii.common, ...Object.values(pii.agents)].some(({ entities }) => entities === 'record');

/** The same with what finds names and the like loaded, where somebody wants it. */
export const openAgentRules = async (pii: PiiOfAgents | null, key: string) =>
  createAgentRules(pii, key, usesEntities(pii) ? [(await import('../entities/entities.ts')).entities] : []);

/** `entities`: what finds names and the like, for those who want it before recording. */
export function createAgentRules(pii: PiiOfAgents | null, key: string, entities: readonly Redactor[]) {
  const own = new Map(Object.entries(pii?.agents ?? {}));
  const made = new Map<string, AgentRules>();
  const shares = own.size + 1;
  const conversations = createRecent<Numbers>(CONVERSATIONS);
  const numbersOf = (trajectory: string): Numbers => {
    if (trajectory === '') return new Map(); // an answer that nobody was shown
    const known = conversations.get(trajectory) ?? new Map();
    conversations.set(trajectory, known, 1 + sizeOf(known));
    return known;
  };
  const make = (settings: PiiSettings | undefined): AgentRules => ({
    rules: createRules({
      ...(settings === undefined ? {} : { settings }),
      ...{ key, shares, also: settings?.entities === 'record' ? entities : [] },
    }),
    known: createKnownMessages(shares),
    numbersOf,
  });
  const common = make(pii?.common);
  return {
    of(agent: string): AgentRules {
      const settings = own.get(agent);
      if (settings === undefined) return common;
      let rules = made.get(agent);
      if (rules === undefined) {
        rules = make(settings);
        made.set(agent, rules);
      }
      return rules;
    },
  };
}

function sizeOf(numbers: Numbers): number {
  let size = 0;
  for (const one of numbers.values()) size += one.size;
  return size;
}
