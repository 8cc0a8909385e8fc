/**
 * Whether a value fits a JSON Schema: a model's tool calls against the tools it was offered, an answer against what a golden
 * case asks for. @cfworker/json-schema does the checking, within a time limit where it could take long, because value and schema are
 * strangers'; it fetches nothing, so a `$ref` that leads out of the schema leads nowhere.
 */
import { dereference, type Schema, type SchemaDraft, Validator } from '@cfworker/json-schema';
import { isObject } from '../collect/untrusted.ts';
import { nodesOfPlain, sizeOf } from './plain-schema.ts';
import { withinTime } from './time-limit.ts';

/** Long enough for any schema that somebody wrote, short enough for the thousands of calls in a window. */
const limitMs = 500;

const drafts: readonly (readonly [RegExp, SchemaDraft])[] = [
  [/draft-04/, '4'],
  [/draft-0[67]/, '7'],
  [/2019-09/, '2019-09'],
];

const draftOf = (schema: Readonly<Record<string, unknown>>): SchemaDraft =>
  drafts.find(([pattern]) => pattern.test(String(schema.$schema)))?.[1] ?? '2020-12';

/** null: it fits. Otherwise where and why not. Throws for a schema that cannot be used, and OutOfTime. */
export function misfit(value: unknown, schema: unknown): string | null {
  if (schema === false) return 'nothing is allowed here';
  if (!isObject(schema)) return null;
  const nodes = nodesOfPlain(schema);
  if (nodes !== null && nodes * sizeOf(value) <= quickly) return check(value, schema);
  return withinTime(limitMs, () => check(value, schema));
}

/** So many comparisons are over before a clock would have been set. */
const quickly = 50_000;

/** A conversation offers the same tools with every call. */
const validators = new WeakMap<object, Validator>();

function check(value: unknown, schema: Readonly<Record<string, unknown>>): string | null {
  const validator = validators.get(schema) ?? new Validator(schema as Schema, draftOf(schema));
  validators.set(schema, validator);
  const { valid, errors } = validator.validate(withoutPrototypes(value));
  if (valid) return null;
  // From the whole to the part: the last says what exactly is wrong.
  const { instanceLocation, error } = errors.at(-1)!;
  return instanceLocation === '#' ? error : `${instanceLocation.slice(2).replaceAll('/', '.')}: ${error}`;
}

/** As `misfit`, for a schema that nobody here wrote: one that cannot be used is not held against the model. */
export function misfitIfKnown(value: unknown, schema: unknown): string | null {
  try {
    return misfit(value, schema);
  } catch {
    return null;
  }
}

/** Why a schema cannot be used; null when it can. */
export function schemaProblem(schema: unknown): string | null {
  if (typeof schema === 'boolean') return null;
  if (!isObject(schema)) return 'a JSON Schema is an object';
  try {
    const known = withinTime(limitMs, () => dereference(schema as Schema));
    for (const part of Object.values(known)) {
      const target = typeof part === 'boolean' ? undefined : (part.__absolute_ref__ as string | undefined);
      if (target !== undefined && known[target] === undefined)
        return `$ref ${String((part as Schema).$ref)} leads nowhere`;
    }
    misfit(null, schema);
    misfit({}, schema);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Names that every object has, such as toString, are not the value's own. */
function withoutPrototypes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutPrototypes);
  if (!isObject(value)) return value;
  const bare = Object.create(null) as Record<string, unknown>;
  for (const [name, item] of Object.entries(value)) bare[name] = withoutPrototypes(item);
  return bare;
}
