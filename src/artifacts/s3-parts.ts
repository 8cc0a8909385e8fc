/** How a file is cut for S3: equal parts and a rest, never more than S3 takes in one upload. Pure. */
const mostParts = 10_000;

export type Part = { /** From 1. */ readonly number: number; readonly start: number; readonly length: number };

export function* partsOf(size: number, partBytes: number): Generator<Part> {
  const each = Math.max(partBytes, Math.ceil(size / mostParts));
  for (let start = 0, number = 1; start < size; start += each, number++)
    yield { number, start, length: Math.min(each, size - start) };
}
