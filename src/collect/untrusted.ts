/**
 * JSON from strangers, made harmless before anything looks at it: keys that could reach an object's prototype are
 * dropped and nesting is capped, so later walks (redaction, JSON.stringify) cannot be tricked or overflow the stack.
 * Not a schema: shape is checked where it is used. The rule for `constructor` follows what prototype pollution needs
 * (`constructor.prototype`), so a tool parameter that is merely called "constructor" survives.
 */
export const MAX_DEPTH = 100;
export const TOO_DEEP = '[too deep]';

export type JsonObject = { [key: string]: unknown };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Parses text; undefined when it is not JSON. */
export function parseUntrusted(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return tidy(value, 0);
}

/** Changes the freshly parsed value in place. */
function tidy(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAX_DEPTH) return TOO_DEEP;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item = value[i];
      if (typeof item === 'object' && item !== null) value[i] = tidy(item, depth + 1);
    }
    return value;
  }
  const object = value as JsonObject;
  // JSON.parse makes `__proto__` an own property, so it is listed here and deleting it touches nothing else.
  for (const key in object) {
    const item = object[key];
    if (key === '__proto__' || (key === 'constructor' && isObject(item) && Object.hasOwn(item, 'prototype'))) {
      delete object[key];
    } else if (typeof item === 'object' && item !== null) {
      object[key] = tidy(item, depth + 1);
    }
  }
  return object;
}
