/**
 * A gate of one's own: a function in the agent's file that sees a conversation as it would be learned and says why not, or null.
 *
 *   curate: { gates: [gate('no drafts', ({ taskType }) => (taskType === 'draft' ? 'a draft' : null))] }
 *
 * It cannot harm the rest: what throws, or answers with anything else, leaves that one conversation out and is counted as
 * such. It is not awaited and must follow from what it is given, or the same traffic would not give the same dataset.
 */
import { createHash } from 'node:crypto';
import type { Row } from './row.ts';

export type OwnGate = { readonly name: string; readonly reason: (conversation: Row) => string | null };

export const gate = (name: string, reason: OwnGate['reason']): OwnGate => ({ name, reason });

export const isOwnGate = (given: unknown): boolean => {
  const { name, reason } = (given ?? {}) as Partial<OwnGate>;
  return typeof reason === 'function' && typeof name === 'string' && /^[a-z0-9][a-z0-9 _-]{0,40}$/i.test(name);
};

const longest = 80;

export function askOwn({ reason }: OwnGate, row: Row): string | null {
  try {
    const said: unknown = reason(structuredClone(row));
    if (said === null) return null;
    return typeof said === 'string' && said.trim() !== '' ? said.trim().slice(0, longest) : 'the gate gave no reason';
  } catch {
    return 'the gate failed';
  }
}

/** What is written down of it with a dataset: its name and a hash of its text, by which a changed gate shows. */
export const gateVersion = ({ name, reason }: OwnGate): string =>
  `${name}#${createHash('sha256').update(String(reason)).digest('hex').slice(0, 8)}`;
