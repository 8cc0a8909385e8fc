/**
 * By what rules a conversation is looked at before it becomes a dataset: what has a form everywhere, named entities in what was said, and
 * in what the agent was told those that are not its own.
 */
import { hash } from 'node:crypto';
import { plainValue } from '../collect/redact/placeholder.ts';
import { openRedaction } from '../collect/redact/redact.ts';
import type { Redactor } from '../collect/redact/redactor.ts';
import { createRules, type Rules } from '../collect/redact/rules.ts';
import type { PiiSettings } from '../collect/redact/settings.ts';

export type Looks = {
  told(value: unknown): Promise<Rules>;
  said(value: unknown): Promise<Rules>;
};

/** The named entities in what an agent is told, each once, by a hash. */
export type NamesIn = (told: unknown) => Promise<ReadonlySet<string>>;
/** Those of them that are the agent's own. */
export type ReadOwn = (namesIn: NamesIn) => Promise<ReadonlySet<string>>;

/** A name in whatever case and spaces. By a hash: a piece of a text keeps the whole text in memory. */
export const nameKey = (name: string): string => hash('sha256', plainValue(name), 'base64url');

export async function openLooks(pii: PiiSettings, readOwn: ReadOwn): Promise<Looks> {
  const formal = () => createRules({ settings: pii, shares: 8 });
  if (pii.entities === 'off') {
    const rules = formal();
    return { told: async () => rules, said: async () => rules };
  }
  // The dictionary takes some 30 MB, and only this wants it.
  const finders = await (await import('../collect/entities/finder.ts')).openFinders(pii.model);
  const namesIn: NamesIn = async (told) => {
    const names = new Set<string>();
    const looking: Rules = {
      ...withNames(formal(), await finders.told.prepare(told)),
      allows(value, { isGuess }) {
        if (isGuess) names.add(nameKey(value));
        return true;
      },
    };
    openRedaction({ rules: looking }).clean(told);
    return names;
  };
  const [told, said] = [formal(), formal()];
  if (pii.ownFrom === 0) {
    return { told: async () => told, said: async (value) => withNames(said, await finders.said.prepare(value)) };
  }
  const own = await readOwn(namesIn);
  const toldOthers: Rules = {
    ...told,
    allows: (value, span) => told.allows(value, span) || (span.isGuess === true && own.has(nameKey(value))),
  };
  return {
    told: async (value) => withNames(toldOthers, await finders.told.prepare(value)),
    said: async (value) => withNames(said, await finders.said.prepare(value)),
  };
}

/** What nothing was found in stays remembered: who finds names finds the same ones in the same text. */
const withNames = (rules: Rules, names: Redactor): Rules => ({
  ...rules,
  redactors: [...rules.redactors, names],
  shortest: 2,
});
