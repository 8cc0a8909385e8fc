/**
 * Which names in an agent's instructions are its own. Instructions are mostly the same for everybody, and then the names in them are
 * the company's: masking those would cost that agent its exact tokens for nothing. But where a caller's name or address is put into
 * them, it is as personal there as in the caller's own words. So a name is the agent's own if it stands in what the agent is told in most
 * people's conversations, and somebody's if not. Counted by name and not by text, because one line of a template that is filled in
 * makes every text another.
 *
 * People are drawn, a thousand at most, and of each one conversation: then it costs the same however large the window is. A draw cannot
 * take a name that few have for one that most have; of what it does not count nothing is taken for the agent's own.
 */
import { hash } from 'node:crypto';
import { readMessage, toolOf } from '../collect/message.ts';
import type { Training } from '../collect/own-traffic.ts';
import { TooMuchWork } from '../collect/redact/redact.ts';
import type { Turn } from '../collect/turn.ts';
import { listOf } from '../collect/untrusted.ts';
import type { Store } from '../store/postgres.ts';
import { batchesOf, drawPeople, placedKey, readSizes, readTurnsOf } from '../store/window.ts';
import type { NamesIn } from './looks.ts';

const mostPeople = 1000;
/** Fewer prove nothing: what stands in their instructions may be theirs. */
export const fewestPeople = 5;
/** A conversation with more is nobody's to learn the company's names from. */
const mostBytes = 4 * 1024 * 1024;
const mostNames = 100_000;

export async function readOwnNames(
  store: Store,
  of: {
    readonly agent: string;
    readonly on: Training;
    readonly since: Date;
    readonly until: Date;
    readonly share: number;
  },
  namesIn: NamesIn,
): Promise<ReadonlySet<string>> {
  const people = await drawPeople(store, { ...of, origin: of.on }, mostPeople);
  const sizes = await readSizes(store, people, mostBytes);
  const readable = people.filter((one) => (sizes.get(placedKey(one)) ?? null) !== null);
  const counts = new Map<string, number>();
  /** Names by what was told: mostly the same again. */
  const known = new Map<string, ReadonlySet<string>>();
  let told = 0;
  for (const batch of batchesOf(readable, sizes)) {
    const turns = await readTurnsOf(store, batch);
    for (const one of batch) {
      const all = toldIn(turns.get(placedKey(one)) ?? []);
      if (all.length === 0) continue;
      told++;
      const text = hash('sha256', JSON.stringify(all), 'base64url');
      const names = known.get(text) ?? (await namesOf(all, namesIn));
      known.set(text, names);
      for (const name of names)
        if (counts.size < mostNames || counts.has(name)) counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  return ownAmong(counts, told, of.share);
}

/** `counts`: of each name the people who have it in their instructions, of `people` who have any. */
export const ownAmong = (counts: ReadonlyMap<string, number>, people: number, share: number): ReadonlySet<string> =>
  new Set([...counts].flatMap(([name, of]) => (of >= Math.max(fewestPeople, share * people) ? [name] : [])));

async function namesOf(told: readonly unknown[], namesIn: NamesIn): Promise<ReadonlySet<string>> {
  try {
    return await namesIn(told);
  } catch (error) {
    if (error instanceof TooMuchWork) return new Set();
    throw error;
  }
}

/** What the agent was told in a conversation, each piece once: instructions as text, tools without their names. */
function toldIn(turns: readonly Turn[]): unknown[] {
  const told = new Map<string, unknown>();
  for (const { request } of turns) {
    for (const message of listOf(request.messages)) {
      const { role, parts } = readMessage(message);
      if (role !== 'system' && role !== 'developer') continue;
      const text = parts.map((part) => part.text ?? '').join('');
      if (text !== '') told.set(`text ${text}`, text);
    }
    for (const tool of listOf(request.tools)) {
      const { description, parameters } = toolOf(tool);
      told.set(`tool ${JSON.stringify([description, parameters])}`, { description, parameters });
    }
  }
  return [...told.values()];
}
