/**
 * Whether a value fits a JSON Schema, for checking a model's tool calls against the tools it was offered. The keywords
 * that tools use: type, enum, const, properties, required, additionalProperties, items, the plain bounds, anyOf, oneOf,
 * allOf. Not: $ref, pattern, format, if/then. What is not understood is not held against the model; `pattern` is left out
 * on purpose, since a recorded schema is a stranger's regular expression.
 */
import { isDeepStrictEqual } from 'node:util';
import { isObject } from '../collect/untrusted.ts';

const maxDepth = 50;
/** Both value and schema are strangers'; at a list of a thousand against a thousand choices patience ends. */
const maxSteps = 1_000_000;
/** Comparing lists and objects may mean going through all of both. */
const wholeSteps = 1000;
type Patience = { left: number };

const typeFits = (value: unknown, type: unknown): boolean => {
  switch (type) {
    case 'object':
      return isObject(value);
    case 'array':
      return Array.isArray(value);
    case 'integer':
      return Number.isInteger(value);
    case 'null':
      return value === null;
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === type;
    default:
      return true;
  }
};

const within = (size: number, least: unknown, most: unknown): boolean =>
  !(typeof least === 'number' && size < least) && !(typeof most === 'number' && size > most);

/** null: it fits. Otherwise where it does not, as a path such as `order.id`, or `the arguments` for the whole. */
export function misfit(
  value: unknown,
  schema: unknown,
  path = '',
  depth = 0,
  patience: Patience = { left: maxSteps },
): string | null {
  const here = path || 'the arguments';
  if (schema === false) return here;
  if (!isObject(schema) || depth > maxDepth || --patience.left < 0) return null;
  const equals = (one: unknown): boolean => {
    patience.left -= typeof one === 'object' && one !== null ? wholeSteps : 1;
    return patience.left < 0 || isDeepStrictEqual(one, value);
  };
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  if (schema.type !== undefined && !types.some((type) => typeFits(value, type))) return here;
  if (Array.isArray(schema.enum) && !schema.enum.some(equals)) return here;
  if (Object.hasOwn(schema, 'const') && !equals(schema.const)) return here;
  if (typeof value === 'string' && !within([...value].length, schema.minLength, schema.maxLength)) return here;
  if (typeof value === 'number') {
    if (!within(value, schema.minimum, schema.maximum)) return here;
    if (typeof schema.exclusiveMinimum === 'number' && value <= schema.exclusiveMinimum) return here;
    if (typeof schema.exclusiveMaximum === 'number' && value >= schema.exclusiveMaximum) return here;
  }
  const inside = Array.isArray(value)
    ? arrayMisfit(value, schema, path, depth, patience)
    : isObject(value)
      ? objectMisfit(value, schema, path, depth, patience)
      : null;
  if (inside !== null) return inside;
  const fits = (one: unknown) => misfit(value, one, path, depth + 1, patience) === null;
  if (Array.isArray(schema.anyOf) && !schema.anyOf.some(fits)) return here;
  if (Array.isArray(schema.oneOf) && schema.oneOf.filter(fits).length !== 1) return here;
  for (const one of Array.isArray(schema.allOf) ? schema.allOf : []) {
    const found = misfit(value, one, path, depth + 1, patience);
    if (found !== null) return found;
  }
  return null;
}

type Plain = Readonly<Record<string, unknown>>;

function arrayMisfit(
  value: readonly unknown[],
  schema: Plain,
  path: string,
  depth: number,
  patience: Patience,
): string | null {
  if (!within(value.length, schema.minItems, schema.maxItems)) return path || 'the arguments';
  if (!isObject(schema.items)) return null;
  for (const [i, item] of value.entries()) {
    const found = misfit(item, schema.items, `${path}[${i}]`, depth + 1, patience);
    if (found !== null) return found;
  }
  return null;
}

function objectMisfit(value: Plain, schema: Plain, path: string, depth: number, patience: Patience): string | null {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const at = (name: string) => (path ? `${path}.${name}` : name);
  for (const name of Array.isArray(schema.required) ? schema.required : [])
    if (typeof name === 'string' && !Object.hasOwn(value, name)) return at(name);
  for (const [name, item] of Object.entries(value)) {
    const known = Object.hasOwn(properties, name);
    const found = misfit(item, known ? properties[name] : schema.additionalProperties, at(name), depth + 1, patience);
    if (found !== null) return found;
  }
  return null;
}
