/**
 * Changes to a request body that leave every other byte as the caller wrote it: another model name, fields added. A body is
 * not parsed and written again, because that would lose what JSON.parse does not keep: big numbers, doubled keys, spacing.
 */
type Body = Readonly<Record<string, unknown>>;

/** The body with `model` set. `body` is what `bytes` parse to; `known`, where its model's names are known to stand. */
export function withModel(bytes: Buffer, body: Body, model: string, known: [number, number][] | null = null): Buffer {
  const spans = known ?? modelSpans(bytes);
  // A key spelled with escapes cannot be told by its bytes; nobody writes so, and the meaning is kept.
  if (spans === null || spans.length === 0) return Buffer.from(JSON.stringify({ ...body, model }));
  const value = Buffer.from(JSON.stringify(model));
  const parts: Buffer[] = [];
  let at = 0;
  for (const [from, to] of spans) {
    parts.push(bytes.subarray(at, from), value);
    at = to;
  }
  parts.push(bytes.subarray(at));
  return Buffer.concat(parts);
}

/** The body with those of `fields` that it does not set itself. */
export function withFields(bytes: Buffer, body: Body, fields: Body): Buffer {
  const missing = Object.entries(fields).filter(([name]) => !Object.hasOwn(body, name));
  if (missing.length === 0) return bytes;
  const text = missing.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)},`).join('');
  const open = bytes.indexOf(0x7b) + 1; // the body is an object with at least `model` in it
  return Buffer.concat([bytes.subarray(0, open), Buffer.from(text), bytes.subarray(open)]);
}

/** Where the values of the top level's `model` stand, quotes included; null when a key there is spelled with escapes. */
function modelSpans(bytes: Buffer): [number, number][] | null {
  const spans: [number, number][] = [];
  let depth = 0;
  let isKeyNext = false;
  let isModelNext = false;
  for (let i = 0; i < bytes.length; i++) {
    switch (bytes[i]) {
      case 0x22: {
        const from = i;
        do i = bytes.indexOf(0x22, i + 1);
        while (i >= 0 && isEscaped(bytes, i));
        if (i < 0) return null; // cannot be: the body was parsed
        if (depth !== 1) break;
        if (isKeyNext) {
          if (bytes.subarray(from, i).includes(0x5c)) return null;
          isKeyNext = false;
          isModelNext = i - from === 6 && bytes.toString('latin1', from + 1, i) === 'model';
        } else if (isModelNext) spans.push([from, i + 1]);
        break;
      }
      case 0x5b:
      case 0x7b:
        if (++depth === 1) isKeyNext = true;
        break;
      case 0x5d:
      case 0x7d:
        depth--;
        break;
      case 0x2c:
        if (depth === 1) {
          isKeyNext = true;
          isModelNext = false;
        }
    }
  }
  return spans;
}

/** An odd number of backslashes stands before it. */
function isEscaped(bytes: Buffer, at: number): boolean {
  let before = at;
  while (bytes[before - 1] === 0x5c) before--;
  return (at - before) % 2 === 1;
}
