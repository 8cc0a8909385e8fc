/**
 * Who finds named entities: the rules that come with Pawl, a token-classification model on ONNX Runtime, or a Presidio analyzer. Models
 * answer later, so all texts of a conversation are asked at once, and what comes back is a redactor that knows those
 * texts alone. One that does not answer is an error: nothing becomes a dataset unread.
 */
import { hash } from 'node:crypto';
import { createRecent } from '../recent.ts';
import type { Redactor, Span } from '../redact/redactor.ts';
import type { PiiSettings } from '../redact/settings.ts';
import { isObject, parseUntrusted } from '../untrusted.ts';
import { entities, entityKinds } from './entities.ts';

export type Finder = { prepare(value: unknown): Promise<Redactor> };
export type Finders = {
  readonly said: Finder;
  /** Of what agents are told, which comes again with every conversation: what came before is known, paragraph by paragraph. */
  readonly told: Finder;
};
/** Where entities are in each text. */
export type FindEntities = (texts: readonly string[]) => Promise<readonly (readonly Span[])[]>;

export async function openFinders(model: PiiSettings['model']): Promise<Finders> {
  switch (model.kind) {
    case 'rules':
      return {
        said: { prepare: async () => entities },
        told: inParagraphs(async (texts) => texts.map((text) => entities.find(text)), entities.find),
      };
    case 'onnx':
      return asking(await (await import('./onnx-finder.ts')).openOnnxFinder(model));
    case 'presidio':
      return asking((await import('./presidio-finder.ts')).openPresidioFinder(model));
    default:
      return model satisfies never;
  }
}

const asking = (find: FindEntities): Finders => ({
  said: {
    async prepare(value) {
      const texts = [...new Set(textsIn(value))];
      const found = await find(texts);
      const known = new Map(texts.map((text, i) => [text, found[i] ?? []]));
      return redactor((text) => known.get(text) ?? behindName(text, (rest) => known.get(rest)));
    },
  },
  told: inParagraphs(find),
});

const redactor = (find: (text: string) => readonly Span[]): Redactor => ({
  name: 'entity',
  kinds: entityKinds,
  find: (text) => [...find(text)],
});

/** Some values are looked at behind the name of their field, `passport: …`, which nobody was asked about. */
function behindName(text: string, find: (rest: string) => readonly Span[] | undefined): readonly Span[] {
  for (let at = text.indexOf(': '); at >= 0; at = text.indexOf(': ', at + 1)) {
    const found = find(text.slice(at + 2));
    if (found) return shifted(found, at + 2);
  }
  return [];
}

const shifted = (spans: readonly Span[], by: number): readonly Span[] =>
  by === 0 ? spans : spans.map((span) => ({ ...span, start: span.start + by, end: span.end + by }));

/** Paragraphs, and the entities in them, that are remembered. */
const REMEMBERED = 40_000;

/** `otherwise`: of what was not there to be asked about. */
function inParagraphs(find: FindEntities, otherwise?: (text: string) => readonly Span[]): Finder {
  const known = createRecent<readonly Span[]>(REMEMBERED);
  return {
    async prepare(value) {
      const spans = new Map<string, readonly Span[]>();
      const asked: { readonly part: string; readonly name: string }[] = [];
      for (const part of new Set(textsIn(value).flatMap(paragraphsOf))) {
        // By a hash: a piece of a text keeps the whole text in memory.
        const name = hash('sha256', part, 'base64url');
        const before = known.get(name);
        if (before === undefined) asked.push({ part, name });
        else spans.set(part, before);
      }
      const found = asked.length === 0 ? [] : await find(asked.map(({ part }) => part));
      for (const [i, { part, name }] of asked.entries()) {
        const own = found[i] ?? [];
        spans.set(part, own);
        known.set(name, own, 1 + own.length);
      }
      const inText = (text: string): readonly Span[] | undefined => {
        let at = 0;
        const all: Span[] = [];
        for (const part of paragraphsOf(text)) {
          const own = spans.get(part);
          if (own === undefined) return undefined;
          all.push(...shifted(own, at));
          at += part.length;
        }
        return all;
      };
      return redactor((text) => inText(text) ?? otherwise?.(text) ?? behindName(text, inText));
    },
  };
}

/** At empty lines: what is filled into a template changes one of them, and the others are known. */
const paragraphsOf = (text: string): string[] => text.split(/(?<=\n\r?\n)/);

/** Every string, and every string in those that are JSON, as redaction meets them. */
function textsIn(value: unknown, depth = 0): string[] {
  if (depth > 100) return [];
  if (typeof value === 'string') {
    const inner = /^\s*[[{]/.test(value) ? parseUntrusted(value) : undefined;
    return [value, ...(isObject(inner) || Array.isArray(inner) ? textsIn(inner, depth + 1) : [])];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => [
    ...(Array.isArray(value) ? [] : [key]),
    ...textsIn(item, depth + 1),
  ]);
}

/** What others call the kinds. */
const names: Readonly<Record<string, string>> = {
  person: 'person',
  per: 'person',
  'private-person': 'person',
  'private-address': 'address',
  address: 'address',
  'street-address': 'address',
  location: 'location',
  loc: 'location',
  gpe: 'location',
  organization: 'organization',
  organisation: 'organization',
  org: 'organization',
  'date-of-birth': 'birth',
  'private-date': 'birth',
};

/** Our kind for a label of somebody's model; null: it is none that is looked for by a model. */
export const entityKind = (label: string): string | null => names[label.toLowerCase().replaceAll('_', '-')] ?? null;
