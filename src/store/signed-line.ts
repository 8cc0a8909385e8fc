/**
 * A journal line with the client key that it came with, before everything else: {"by":"<id of the key>","kind":…}. A gateway that
 * cannot reach its database goes by the keys it last knew; what one of them had no right to any more is found out when the line
 * is written, by the database's own list (revoked.ts).
 */
import { type Line, readLine } from './line.ts';

const signature = /^\{"by":"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",/;
const signatureBytes = 48;

/** What a signed line begins with. */
export const beginning = (key: string | null | undefined): string =>
  key === null || key === undefined ? '{' : `{"by":"${key}",`;

export const signLine = (line: string, key: string | null | undefined): string =>
  key === null || key === undefined ? line : beginning(key) + line.slice(1);

/** Throws as `readLine` does. */
export function readSignedLine(payload: Buffer): Line {
  const by = signature.exec(payload.toString('latin1', 0, signatureBytes))?.[1];
  const line = readLine(payload);
  return by === undefined ? line : { ...line, by };
}
