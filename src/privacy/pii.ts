/**
 * What personal data is stored, by kind and with where, never the value: what was masked (placeholders in stored text), and what today's
 * recognizers and rules still find in it: conversations with their explored answers, comments and corrections. Also for a file of
 * one's own, line by line. Reads a page at a time.
 */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { openRedaction, TooMuchWork } from '../collect/redact/redact.ts';
import type { Rules } from '../collect/redact/rules.ts';
import type { PiiSettings } from '../collect/redact/settings.ts';
import { type Origin, origins } from '../collect/trajectory.ts';
import type { Turn } from '../collect/turn.ts';
import { isObject, listOf } from '../collect/untrusted.ts';
import { type Looks, openLooks } from '../curate/looks.ts';
import { readOwnNames } from '../curate/own-names.ts';
import { readComments } from '../store/dataset-owners.ts';
import type { Store } from '../store/postgres.ts';
import { readSiblings } from '../store/siblings.ts';
import { batchesOf, placedKey, readSizes, readTurnsOf, windowPages } from '../store/window.ts';

/** Of one kind: how often, in how many conversations and comments (or lines), in whose words, and the first of them by id. */
export type PiiFound = {
  count: number;
  in: number;
  where: Record<string, number>;
  first: string[];
};
export type PiiSurvey = {
  readonly agent: string;
  readonly since: number;
  readonly until: number;
  conversations: number;
  turns: number;
  /** Too large to look through. */
  unread: number;
  /** Placeholders in what is stored. */
  readonly masked: Record<string, PiiFound>;
  /** What would be replaced today; null: it was not looked for. */
  readonly found: Record<string, PiiFound> | null;
};

const MOST_NAMED = 10;
const placeholder = /\[([A-Z]{2,12}(?:_[A-Z]{2,12}){0,3})(?:_(?:\d{1,9}|h[a-z0-9]{12}))?\]/g;
const older = /\[(email|card|secret)\]/g;

export async function surveyPii(
  store: Store,
  {
    agent,
    since,
    until,
    pii,
    onProgress,
  }: {
    readonly agent: string;
    readonly since: Date;
    readonly until: Date;
    /** What is personal for the agent, to be looked for as when a dataset is made; null: only placeholders are counted. */
    readonly pii: PiiSettings | null;
    readonly onProgress?: (conversations: number) => void;
  },
): Promise<PiiSurvey> {
  const survey: PiiSurvey = {
    ...{ agent, since: since.getTime(), until: until.getTime(), conversations: 0, turns: 0, unread: 0 },
    ...{ masked: Object.create(null), found: pii === null ? null : Object.create(null) },
  };
  const of = { agent, on: 'production', since, until } as const;
  const looks = pii && (await openLooks(pii, (namesIn) => readOwnNames(store, { ...of, share: pii.ownFrom }, namesIn)));
  for (const origin of origins as readonly Origin[])
    for await (const page of windowPages(store, { agent, origin, since, until })) {
      survey.conversations += page.length;
      onProgress?.(survey.conversations);
      const sizes = await readSizes(store, page);
      const readable = page.filter((one) => (sizes.get(placedKey(one)) ?? null) !== null);
      survey.unread += page.length - readable.length;
      for (const batch of batchesOf(readable, sizes)) {
        const turns = await readTurnsOf(store, batch);
        const ids = [...turns.values()].flatMap((own) => own.map((turn) => turn.id));
        const { siblings } = await readSiblings(store, { agent, turns: ids });
        for (const one of batch) {
          const own = turns.get(placedKey(one)) ?? [];
          survey.turns += own.length;
          const explored = own.flatMap((turn) => siblings.get(turn.id) ?? []).flatMap(({ choices }) => choices);
          const words = [
            ...own.flatMap((turn) => [...wordsOf(turn)]),
            ...explored.map(({ message }) => ['explored answer', message] as const),
          ];
          await look(survey, words, one.trajectory.id, looks);
        }
      }
    }
  // What was said about a conversation may come days after it.
  for await (const { id, text } of readComments(store, { agent, since, until }))
    await look(survey, [['feedback', text]], `signal ${id}`, looks);
  return survey;
}

/** Every piece once, though each turn repeats those before it. */
async function look(
  survey: PiiSurvey,
  pieces: readonly (readonly [who: string, words: unknown])[],
  id: string,
  looks: Looks | null,
): Promise<void> {
  const seen = new Set<string>();
  for (const [who, words] of pieces) {
    const text = JSON.stringify(words) ?? '';
    if (seen.has(text)) continue;
    seen.add(text);
    for (const [kind, count] of maskedIn(text)) add(survey.masked, kind, count, who, id);
    if (looks === null || survey.found === null) continue;
    const rules = await (toldBy.includes(who) ? looks.told(words) : looks.said(words));
    for (const [kind, count] of foundIn(words, rules)) add(survey.found, kind, count, who, id);
  }
}

/** Whose words the agent was told. */
const toldBy: readonly string[] = ['system', 'developer', 'tools'];

function* wordsOf({ request, choices, error }: Turn): Generator<readonly [string, unknown]> {
  for (const message of [...listOf(request.messages), ...listOf(request.input)])
    yield [isObject(message) && typeof message.role === 'string' ? message.role.slice(0, 20) : 'input', message];
  const { messages: _, input, tools, ...rest } = request;
  if (tools !== undefined) yield ['tools', tools];
  yield ['request', Array.isArray(input) ? rest : { ...rest, input }];
  for (const { message } of choices) yield ['answer', message];
  if (error !== null) yield ['error', error];
}

function maskedIn(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [, name] of text.matchAll(placeholder)) {
    const kind = name!.toLowerCase().replaceAll('_', '-');
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  for (const [, kind] of text.matchAll(older)) counts.set(kind!, (counts.get(kind!) ?? 0) + 1);
  return counts;
}

function foundIn(words: unknown, rules: Rules): [string, number][] {
  const redaction = openRedaction({ rules: { ...rules, policyOf: () => 'never' } });
  try {
    redaction.clean(words);
  } catch (error) {
    if (error instanceof TooMuchWork) return [['too-large-to-check', 1]];
    throw error;
  }
  return Object.entries(redaction.counts);
}

function add(to: Record<string, PiiFound>, kind: string, count: number, who: string, id: string): void {
  to[kind] ??= { count: 0, in: 0, where: Object.create(null), first: [] };
  const of = to[kind];
  of.count += count;
  of.where[who] = (of.where[who] ?? 0) + count;
  if (of.first.at(-1) === id) return;
  of.in++;
  if (of.first.length < MOST_NAMED) of.first.push(id);
}

const LONGEST_LINE = 8 * 1024 * 1024;

/** A file of text or JSON lines: kinds, and on which lines. Nothing in it is known to be an agent's own. */
export async function scanFile(
  path: string,
  pii: PiiSettings,
): Promise<{ readonly lines: number; readonly found: Record<string, PiiFound> }> {
  const found: Record<string, PiiFound> = Object.create(null);
  let lines = 0;
  const looks = await openLooks(pii, async () => new Set());
  const input = createReadStream(path, 'utf8');
  for await (const line of createInterface({ input, crlfDelay: Infinity })) {
    lines++;
    if (line.length > LONGEST_LINE) {
      add(found, 'too-large-to-check', 1, 'line', `line ${lines}`);
      continue;
    }
    for (const [kind, count] of foundIn(line, await looks.said(line))) add(found, kind, count, 'line', `line ${lines}`);
  }
  return { lines, found };
}
