/**
 * A JSON Schema of which no value can make a validator work for long: a tree without references, patterns or comparisons of items with
 * each other, so that each of its nodes is held at most once against each node of a value. A clock beside every check costs more than
 * such a check (time-limit.ts), and nearly all schemas of tools are of this kind. Pure.
 */
import { isObject } from '../collect/untrusted.ts';

/** Say nothing about a value, or are compared with it once. */
const harmless = new Set([
  ...['$schema', '$comment', 'title', 'description', 'default', 'examples', 'deprecated', 'readOnly', 'writeOnly'],
  ...['type', 'required', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  ...['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'],
]);
const values = new Set(['enum', 'const']);
const schemas = new Set(['items', 'additionalProperties', 'not']);
const lists = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems', 'items']);
/** Their expressions go over a text once. */
const formats: readonly unknown[] = ['date', 'time', 'date-time'];

const known = new WeakMap<object, number | null>();

/** How many nodes it has; null: it is not of this kind. */
export function nodesOfPlain(schema: Readonly<Record<string, unknown>>): number | null {
  let nodes = known.get(schema);
  if (nodes === undefined) {
    nodes = count(schema, 0);
    known.set(schema, nodes);
  }
  return nodes;
}

const deepest = 20;

function count(schema: unknown, depth: number): number | null {
  if (typeof schema === 'boolean') return 1;
  if (!isObject(schema) || depth > deepest) return null;
  let nodes = 1;
  const also = (more: number | null): boolean => {
    nodes += more ?? 0;
    return more !== null;
  };
  for (const [name, value] of Object.entries(schema)) {
    const isFine = (): boolean => {
      if (harmless.has(name)) return also(Array.isArray(value) ? value.length : 0);
      if (values.has(name)) return also(sizeOf(value));
      if (name === 'format') return formats.includes(value);
      if (name === 'properties')
        return isObject(value) && Object.values(value).every((one) => also(count(one, depth + 1)));
      if (Array.isArray(value)) return lists.has(name) && value.every((one) => also(count(one, depth + 1)));
      return schemas.has(name) && also(count(value, depth + 1));
    };
    if (!isFine()) return null;
  }
  return nodes;
}

/** Nodes of a value, long texts counted by their length. */
export function sizeOf(value: unknown): number {
  if (typeof value === 'string') return 1 + (value.length >> 6);
  if (typeof value !== 'object' || value === null) return 1;
  let size = 1;
  for (const one of Object.values(value)) size += 1 + sizeOf(one);
  return size;
}
