/**
 * Who finds named entities: the rules that come with Pawl, a token-classification model on ONNX Runtime, or a Presidio analyzer. Models
 * answer later, so all texts of a conversation are asked at once, and what comes back is a redactor that knows those
 * texts alone. One that does not answer is an error: nothing becomes a dataset unread.
 */
import type { Redactor, Span } from '../redact/redactor.ts';
import type { PiiSettings } from '../redact/settings.ts';
import { isObject, parseUntrusted } from '../untrusted.ts';
import { entities, entityKinds } from './entities.ts';

export type Finder = { prepare(value: unknown): Promise<Redactor> };
/** Where entities are in each text. */
export type FindEntities = (texts: readonly string[]) => Promise<readonly (readonly Span[])[]>;

export async function openFinder(model: PiiSettings['model']): Promise<Finder> {
  switch (model.kind) {
    case 'rules':
      return { prepare: async () => entities };
    case 'onnx':
      return asking(await (await import('./onnx-finder.ts')).openOnnxFinder(model));
    case 'presidio':
      return asking((await import('./presidio-finder.ts')).openPresidioFinder(model));
    default:
      return model satisfies never;
  }
}

function asking(find: FindEntities): Finder {
  return {
    async prepare(value) {
      const texts = [...new Set(textsIn(value))];
      const found = await find(texts);
      const known = new Map(texts.map((text, i) => [text, found[i] ?? []]));
      return { name: 'entity', kinds: entityKinds, find: (text) => [...(known.get(text) ?? [])] };
    },
  };
}

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
